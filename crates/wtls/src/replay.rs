//! Duplicate removal: a sliding window over the sequence numbers of one read state (§9.2.3.1).

/// Size of the window: the highest number and the 31 below it.
pub const WINDOW: u16 = 32;

/// The numbers seen so far. A number is marked only after its record has been authenticated, so
/// that a forged record cannot block the genuine one.
#[derive(Debug, Clone, Default)]
pub struct ReplayWindow {
    highest: Option<u16>,
    /// Bit n stands for `highest - n`.
    seen: u32,
}

impl ReplayWindow {
    /// Whether a record with this number may be new.
    pub fn may_accept(&self, sequence: u16) -> bool {
        match self.highest {
            Some(highest) if sequence <= highest => {
                let age = highest - sequence;
                age < WINDOW && self.seen & (1 << age) == 0
            }
            _ => true,
        }
    }

    /// Marks a number as seen.
    pub fn mark(&mut self, sequence: u16) {
        match self.highest {
            Some(highest) if sequence <= highest => {
                if highest - sequence < WINDOW {
                    self.seen |= 1 << (highest - sequence);
                }
            }
            _ => {
                let advance = self.highest.map_or(u16::MAX, |highest| sequence - highest);
                self.seen = self.seen.checked_shl(advance.into()).unwrap_or(0) | 1;
                self.highest = Some(sequence);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_accepted_once_within_the_window() {
        let mut window = ReplayWindow::default();
        for sequence in [0, 1, 5, 3, 40] {
            assert!(window.may_accept(sequence), "{sequence}");
            window.mark(sequence);
            assert!(!window.may_accept(sequence), "{sequence} twice");
        }
        assert!(!window.may_accept(8), "32 below the highest is too old");
        assert!(window.may_accept(9));
        window.mark(9);
        assert!(!window.may_accept(9));
        assert!(window.may_accept(41));
        window.mark(u16::MAX);
        assert!(!window.may_accept(41));
        assert!(window.may_accept(u16::MAX - 1));
    }
}
