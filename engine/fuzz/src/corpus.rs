//! The inputs of a target: its seeds, and mutations of inputs that had a new answer.

use std::collections::HashSet;

use crate::random::Random;

/// Longest input in bytes; a longer one is truncated.
const MAX_LENGTH: usize = 64 << 10;
/// Most inputs that are kept.
const MAX_TEXTS: usize = 4096;
/// Most mutations of one input at a time.
const MAX_CHANGES: usize = 6;

/// The inputs to mutate, and the answers that occurred.
pub(crate) struct Corpus {
    texts: Vec<Vec<u8>>,
    words: Vec<&'static str>,
    answers: HashSet<String>,
}

impl Corpus {
    pub(crate) fn new(seeds: Vec<Vec<u8>>, words: Vec<&'static str>) -> Self {
        Self {
            texts: seeds,
            words,
            answers: HashSet::new(),
        }
    }

    /// The seeds, and after them the inputs that had a new answer.
    pub(crate) fn into_texts(self) -> Vec<Vec<u8>> {
        self.texts
    }

    /// The number of different answers.
    pub(crate) fn answers(&self) -> usize {
        self.answers.len()
    }

    /// Keeps an input that has a new answer. Digits of the answer are ignored: positions and sizes
    /// do not make an answer new.
    pub(crate) fn learn(&mut self, text: &[u8], answer: &str) {
        let kind: String = answer
            .chars()
            .filter(|letter| !letter.is_ascii_digit())
            .take(96)
            .collect();
        if self.texts.len() < MAX_TEXTS && self.answers.insert(kind) {
            self.texts.push(text.to_vec());
        }
    }

    /// The next input, which depends only on the random numbers.
    pub(crate) fn next(&self, random: &mut Random) -> Vec<u8> {
        let mut text = random.one_of(&self.texts).cloned().unwrap_or_default();
        for _ in 0..=random.below(MAX_CHANGES) {
            self.change(&mut text, random);
        }
        text.truncate(MAX_LENGTH);
        text
    }

    fn change(&self, text: &mut Vec<u8>, random: &mut Random) {
        let at = random.below(text.len() + 1);
        let end = (at + random.below(24)).min(text.len());
        match random.below(8) {
            0 => drop(text.drain(at..end)),
            1 => {
                if let Some(byte) = text.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            2 | 3 => {
                let word = random.one_of(&self.words).copied().unwrap_or_default();
                text.splice(at..at, word.bytes());
            }
            4 => {
                let word = random.one_of(&self.words).copied().unwrap_or_default();
                text.splice(at..end, word.bytes());
            }
            5 => {
                let piece: Vec<u8> = text.get(at..end).unwrap_or_default().to_vec();
                let times = 1 + random.below(40);
                text.splice(at..at, piece.repeat(times));
            }
            6 => {
                let other = random.one_of(&self.texts).cloned().unwrap_or_default();
                let from = random.below(other.len() + 1);
                let to = (from + random.below(200)).min(other.len());
                let piece = other.get(from..to).unwrap_or_default().to_vec();
                text.splice(at..end, piece);
            }
            _ => {
                let odd: [&[u8]; 8] = [
                    b"\0",
                    b"\xff",
                    "é".as_bytes(),
                    "\u{1F980}".as_bytes(),
                    b"\n",
                    b"\"",
                    b"9223372036854775808",
                    b"1e309",
                ];
                let odd = random.one_of(&odd).copied().unwrap_or_default();
                text.splice(at..end, odd.iter().copied());
            }
        }
    }
}
