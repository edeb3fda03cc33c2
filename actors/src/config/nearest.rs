//! The known word that was probably meant.
//!
//! Owns: how far a typing mistake reaches. Must never: guess at something far away.

use fencepost_core::limits::CONFIG_WORD_CHARS_MAX;

/// The nearest of these words: at most a third of the letters differ.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| word.to_lowercase().replace('-', "_");
    let meant = plain(word);
    let length = meant.chars().take(CONFIG_WORD_CHARS_MAX + 1).count();
    if length > CONFIG_WORD_CHARS_MAX {
        return None;
    }
    let far = |known: &&str| strsim::damerau_levenshtein(&meant, &plain(known));
    let best = known.into_iter().min_by_key(far)?;
    (far(&best) <= (length / 3).max(1)).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typing_mistake_finds_its_word_and_a_strange_word_none() {
        let known = ["slots", "queues", "drain"];
        assert_eq!(nearest("slotz", known), Some("slots"));
        assert_eq!(nearest("Queue", known), Some("queues"));
        assert_eq!(nearest("dirain", known), Some("drain"));
        assert_eq!(nearest("workers", known), None);
        assert_eq!(nearest(&"s".repeat(1 << 20), known), None);
        assert_eq!(nearest("", known), None);
    }
}
