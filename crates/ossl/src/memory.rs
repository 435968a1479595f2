//! Counting what is held: every byte that OpenSSL or this program allocates for an account.
//!
//! OpenSSL takes allocation functions only before its first allocation, so [`install`] is called when the
//! program starts. From then on its allocations pass through here, as do Rust's through [`Counting`];
//! while nothing is counted, that is one look at a thread-local flag. While [`count`] runs, each
//! block is entered with its requested size under the account that is current, and crossed out when it
//! is freed, by any thread.

use libc::{c_char, c_int, c_void, size_t};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

/// Whose bytes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    Uncounted,
    Client,
    Server,
    /// The client's context: settings, certificates, trusted roots.
    ClientContext,
    ServerContext,
}

const ACCOUNTS: usize = 5;

/// Bytes of one account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub bytes: usize,
    /// The most that was held at once.
    pub peak_bytes: usize,
}

#[derive(Default)]
struct Book {
    blocks: HashMap<usize, (usize, Account)>,
    held: [Held; ACCOUNTS],
}

thread_local! {
    static COUNTING: Cell<bool> = const { Cell::new(false) };
    static CURRENT: Cell<Account> = const { Cell::new(Account::Uncounted) };
    // Never dropped: a destructor would have to be registered from within an allocation.
    static BOOK: RefCell<Option<ManuallyDrop<Book>>> = const { RefCell::new(None) };
}

/// Counts what `work` allocates on this thread. [`held`] returns the counts while `work` runs. Nested calls only run
/// `work`; the outer call counts its allocations.
pub fn count<T>(work: impl FnOnce() -> T) -> T {
    if COUNTING.get() {
        return work();
    }
    BOOK.set(Some(ManuallyDrop::new(Book::default())));
    COUNTING.set(true);
    let _ends = Counted;
    work()
}

/// While it lives, this thread's allocations are counted; also where `work` panics.
struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        COUNTING.set(false);
        if let Some(book) = BOOK.take() {
            drop(ManuallyDrop::into_inner(book));
        }
    }
}

/// Runs `work` on an account; nested calls change the account for their time.
pub fn on<T>(account: Account, work: impl FnOnce() -> T) -> T {
    let _ends = On(CURRENT.replace(account));
    work()
}

/// The account to go back to, also where `work` panics.
struct On(Account);

impl Drop for On {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// The figures of an account so far. All zero while no account is open.
pub fn held(account: Account) -> Held {
    BOOK.with_borrow(|book| book.as_ref().map_or_else(Held::default, |book| book.held[account as usize]))
}

fn enter(block: *mut c_void, size: usize) {
    let account = CURRENT.get();
    if account == Account::Uncounted || block.is_null() {
        return;
    }
    with_book(|book| {
        book.blocks.insert(block as usize, (size, account));
        let held = &mut book.held[account as usize];
        held.bytes += size;
        held.peak_bytes = held.peak_bytes.max(held.bytes);
    });
}

/// Crosses a block out; its size and account, where it had one.
fn leave(block: *mut c_void) -> Option<(usize, Account)> {
    with_book(|book| {
        let (size, account) = book.blocks.remove(&(block as usize))?;
        book.held[account as usize].bytes -= size;
        Some((size, account))
    })
    .flatten()
}

/// Enters a block that was moved. It stays on the account that it was first entered under; where it could not be moved,
/// the old one is still held.
fn enter_moved(old: *mut c_void, known: Option<(usize, Account)>, moved: *mut c_void, size: usize) {
    let account = known.map_or_else(|| CURRENT.get(), |known| known.1);
    on(account, || match known {
        // For a size of zero libc frees the block and may return null.
        Some((before, _)) if moved.is_null() && size > 0 => enter(old, before),
        _ => enter(moved, size),
    });
}

/// Works on the book; what that allocates itself is not entered.
fn with_book<T>(work: impl FnOnce(&mut Book) -> T) -> Option<T> {
    if !COUNTING.replace(false) {
        return None;
    }
    let result = BOOK.with_borrow_mut(|book| book.as_mut().map(|book| work(book)));
    COUNTING.set(true);
    result
}

#[inline]
fn is_counting() -> bool {
    COUNTING.get()
}

unsafe extern "C" {
    fn CRYPTO_set_mem_functions(
        malloc: unsafe extern "C" fn(size_t, *const c_char, c_int) -> *mut c_void,
        realloc: unsafe extern "C" fn(*mut c_void, size_t, *const c_char, c_int) -> *mut c_void,
        free: unsafe extern "C" fn(*mut c_void, *const c_char, c_int),
    ) -> c_int;
}

/// Routes OpenSSL's allocations through here. True where that is so, now or since earlier.
///
/// OpenSSL refuses once it has allocated anything; then its memory can't be counted in this process.
pub fn install() -> bool {
    // OpenSSL's result never changes, and concurrent threads get the same.
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    // SAFETY: the functions keep the contract of malloc, realloc and free, for one another's blocks, and never unwind:
    // what they call does not panic.
    *INSTALLED.get_or_init(|| unsafe { CRYPTO_set_mem_functions(malloc, realloc, free) } == 1)
}

/// Lets go of what OpenSSL's list of this thread's errors keeps: where in its source each was raised.
///
/// Decrypting with RSA always leaves an entry there, marked as void. It is the thread's and no connection's.
pub fn clear_errors() {
    // SAFETY: works on this thread's own list, which it makes where there is none.
    unsafe { openssl_sys::ERR_clear_error() };
}

unsafe extern "C" fn malloc(size: size_t, _: *const c_char, _: c_int) -> *mut c_void {
    // SAFETY: libc takes any size; a null result is handed on.
    let block = unsafe { libc::malloc(size) };
    if is_counting() {
        enter(block, size);
    }
    block
}

unsafe extern "C" fn realloc(block: *mut c_void, size: size_t, _: *const c_char, _: c_int) -> *mut c_void {
    let known = if is_counting() { leave(block) } else { None };
    // SAFETY: OpenSSL gives null or a block of these functions that it has not freed; both are libc's own.
    let moved = unsafe { libc::realloc(block, size) };
    if is_counting() {
        enter_moved(block, known, moved, size);
    }
    moved
}

unsafe extern "C" fn free(block: *mut c_void, _: *const c_char, _: c_int) {
    if is_counting() {
        leave(block);
    }
    // SAFETY: as for `realloc`; OpenSSL does not use it afterwards.
    unsafe { libc::free(block) };
}

/// Gives free memory back to the system where the C library keeps it: glibc does after many blocks were freed. Takes
/// milliseconds for a hundred megabytes.
pub fn release_free() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it works on free blocks only, and takes the locks of all arenas.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Rust's allocator, through the same book. A program that wants its own memory counted makes this its
/// `#[global_allocator]`.
pub struct Counting;

// SAFETY: every call is handed to the system's allocator unchanged, whose contract is this trait's; the book only notes
// addresses and sizes, does not count what it allocates itself, and does not panic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees the same.
        let block = unsafe { System.alloc(layout) };
        if is_counting() {
            enter(block.cast(), layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_counting() {
            leave(block.cast());
        }
        // SAFETY: the caller guarantees the same.
        unsafe { System.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let known = if is_counting() { leave(block.cast()) } else { None };
        // SAFETY: the caller guarantees the same.
        let moved = unsafe { System.realloc(block, layout, size) };
        if is_counting() {
            enter_moved(block.cast(), known, moved.cast(), size);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    #[test]
    fn what_is_held_is_counted_on_its_account() {
        count(|| {
            let client = on(Account::Client, || Vec::<u8>::with_capacity(1000));
            let mut server = on(Account::Server, || Vec::<u8>::with_capacity(10));
            // It grows on the account that it was made on, whichever account is open now.
            on(Account::Client, || server.reserve_exact(500));
            assert_eq!(held(Account::Client), Held { bytes: 1000, peak_bytes: 1000 });
            assert_eq!(held(Account::Server).bytes, 500);
            drop(client);
            assert_eq!(held(Account::Client), Held { bytes: 0, peak_bytes: 1000 });
            // A count inside a count does not end it.
            count(|| ());
            assert_eq!(held(Account::Server).bytes, 500);
        });
        assert_eq!(held(Account::Server), Held::default());
    }

    #[test]
    fn a_panic_ends_counting_and_gives_the_account_back() {
        let caught = std::panic::catch_unwind(|| count(|| on(Account::Client, || panic!("planted"))));
        assert!(caught.is_err());
        assert!(!COUNTING.get() && BOOK.with_borrow(Option::is_none));
        assert_eq!(CURRENT.get(), Account::Uncounted);
        let block = on(Account::Client, || vec![0_u8; 100]);
        assert_eq!((block.len(), held(Account::Client)), (100, Held::default()));
    }

    #[test]
    fn threads_agree_on_whether_openssl_is_counted() {
        let threads = [(); 8].map(|()| std::thread::spawn(install));
        let answers = threads.map(|thread| thread.join().expect("no panic"));
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    }
}
