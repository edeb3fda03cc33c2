//! Names of schedules, queues, tenants, nodes, handlers and tags.
//!
//! Owns: the one alphabet. Must never: normalise (what was sent is what is stored). Next: `ids.rs`.

use crate::limits::NAME_BYTES_MAX;
use std::fmt;
use std::sync::Arc;

/// What the lines of remote jobs begin with.
const REMOTE_MARK: char = '~';
/// What the lines of commands begin with.
const COMMAND_MARK: char = '!';
/// Sorts after every line of commands, before every name of a user.
const QUEUES_FROM: char = '"';

/// 1 to 128 characters of `A-Z a-z 0-9 . _ -`, the first a letter or digit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

/// Why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Empty, or longer than the limit.
    #[error("a name has 1 to {NAME_BYTES_MAX} characters, not {0}")]
    Length(usize),
    /// A character outside the alphabet.
    #[error(
        "a name is made of letters, digits, '.', '_' and '-' and starts with a letter or digit; character {0} is none of them"
    )]
    Character(usize),
}

impl Name {
    /// Checks and keeps `text`.
    pub fn new(text: &str) -> Result<Name, NameError> {
        if text.is_empty() || text.len() > NAME_BYTES_MAX {
            return Err(NameError::Length(text.chars().count()));
        }
        let fits = |(i, b): (usize, u8)| b.is_ascii_alphanumeric() || (i > 0 && matches!(b, b'.' | b'_' | b'-'));
        match text.bytes().enumerate().position(|pair| !fits(pair)) {
            Some(at) => Err(NameError::Character(at + 1)),
            None => Ok(Name(text.into())),
        }
    }

    /// The line of this queue in which remote jobs wait, apart from jobs that nodes run themselves. No name of a user
    /// begins like it, and it sorts after all of them.
    pub fn remote_line(&self) -> Name {
        Name(format!("{REMOTE_MARK}{self}").into())
    }

    /// The line of this queue in which its commands wait, which not every worker runs. No name of a user begins like
    /// it, either.
    pub fn command_line(&self) -> Name {
        Name(format!("{COMMAND_MARK}{self}").into())
    }

    /// A line's name: a queue's, or that of its remote jobs, or of its commands.
    pub fn line(text: &str) -> Result<Name, NameError> {
        if let Some(queue) = text.strip_prefix(REMOTE_MARK) {
            return Name::new(queue).map(|queue| queue.remote_line());
        }
        match text.strip_prefix(COMMAND_MARK) {
            Some(queue) => Name::new(queue).map(|queue| queue.command_line()),
            None => Name::new(text),
        }
    }

    /// The queue of a line.
    pub fn queue(&self) -> Name {
        match self.0.strip_prefix([REMOTE_MARK, COMMAND_MARK]) {
            Some(queue) => Name(queue.into()),
            None => self.clone(),
        }
    }

    /// Whether it is a line of commands.
    pub fn is_command_line(&self) -> bool {
        self.0.starts_with(COMMAND_MARK)
    }

    /// Whether it is the line that has the name of its queue.
    pub fn is_queue(&self) -> bool {
        !self.is_remote_line() && !self.is_command_line()
    }

    /// Whether it is a line of remote jobs.
    pub fn is_remote_line(&self) -> bool {
        self.0.starts_with(REMOTE_MARK)
    }

    /// Where the lines of nodes begin in the order of lines, their queues' and, before these, those of their commands.
    pub(crate) fn lines_from(commands: bool) -> Name {
        let first = if commands { COMMAND_MARK } else { QUEUES_FROM };
        Name(String::from(first).into())
    }

    /// Where they end: the lines of remote jobs follow.
    pub(crate) fn lines_to() -> Name {
        Name(String::from(REMOTE_MARK).into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}
