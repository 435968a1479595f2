//! Cancellation of key generation, which can take long: a callback decides regularly whether to continue.

use std::cell::RefCell;
use std::ops::ControlFlow;

/// The callback that decides whether to continue.
type Watch = Box<dyn FnMut() -> ControlFlow<()>>;

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Restores the previous watch, however the work ends.
struct Restored(Option<Watch>);

impl Drop for Restored {
    fn drop(&mut self) {
        WATCH.set(self.0.take());
    }
}

/// Calls `work`. While this thread generates keys in it, `watch` is called regularly; after it returns `Break`, the
/// current key and all later ones fail with [`PkiError::Interrupted`](crate::PkiError::Interrupted).
pub fn cancellable<T>(watch: impl FnMut() -> ControlFlow<()> + 'static, work: impl FnOnce() -> T) -> T {
    let _restored = Restored(WATCH.replace(Some(Box::new(watch))));
    work()
}

/// Whether to continue, according to the callback.
pub(crate) fn is_wanted() -> bool {
    WATCH.with(|watch| {
        // A callback that generates keys itself is not called for them.
        let Ok(mut watch) = watch.try_borrow_mut() else { return true };
        watch.as_mut().is_none_or(|watch| watch().is_continue())
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{PkiError, keys};
    use shakedown_trace::suite::KeyType;
    use std::cell::Cell;
    use std::rc::Rc;

    #[test]
    fn callback_is_called_within_and_between_key_generations() {
        let asked = Rc::new(Cell::new(0));
        let counted = Rc::clone(&asked);
        let rsa = KeyType::Rsa { bits: 2048, exponent_3: false };
        cancellable(
            move || {
                counted.set(counted.get() + 1);
                ControlFlow::Continue(())
            },
            || keys::generate(rsa).map(drop),
        )
        .unwrap();
        assert!(asked.get() > 2, "{}", asked.get());
        assert!(keys::generate(KeyType::Ed25519).is_ok());
    }

    #[test]
    fn key_generation_is_cancelled_midway() {
        let left = Cell::new(3);
        let mut seen = Vec::new();
        cancellable(
            move || {
                left.set(left.get() - 1);
                if left.get() > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
            || {
                for key in
                    [KeyType::Rsa { bits: 4096, exponent_3: false }, KeyType::Ed25519, KeyType::Dsa(512)]
                {
                    seen.push(keys::generate(key).map(drop));
                }
            },
        );
        for made in seen {
            assert!(matches!(made, Err(PkiError::Interrupted)), "{made:?}");
        }
        assert!(keys::generate(KeyType::Dsa(512)).is_ok(), "cancellation is over");
    }

    #[test]
    fn outer_callback_is_restored_afterwards() {
        cancellable(
            || ControlFlow::Break(()),
            || {
                cancellable(|| ControlFlow::Continue(()), || assert!(is_wanted()));
                assert!(!is_wanted());
            },
        );
        assert!(is_wanted());
    }
}
