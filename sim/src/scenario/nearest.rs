//! The known word that was probably meant.
//!
//! Owns: how far a typing mistake reaches. Must never: guess at something far away. (The product's own module of this
//! name is not compiled for the simulator.)

/// Letters of the longest word that is looked at.
const LETTERS_MAX: usize = 64;

/// The nearest of these words: at most a third of the letters differ.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| word.to_lowercase().replace('-', "_");
    let meant = plain(word);
    let letters = meant.chars().take(LETTERS_MAX + 1).count();
    if letters > LETTERS_MAX {
        return None;
    }
    let far = |known: &&str| strsim::damerau_levenshtein(&meant, &plain(known));
    let best = known.into_iter().min_by_key(far)?;
    (far(&best) <= (letters / 3).max(1)).then_some(best)
}
