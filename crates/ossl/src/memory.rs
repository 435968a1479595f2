//! Counts the memory in use: every byte that OpenSSL or this program allocates for an account.
//!
//! OpenSSL accepts allocation functions only before its first allocation, so [`install`] is called when the program
//! starts. From then on these functions handle its allocations, and [`Counting`] handles Rust's. Outside of [`count`],
//! an allocation costs one check of a thread-local flag. Within it, each block is recorded with its requested size on
//! the current account, and removed when it is freed on the same thread.

use libc::{c_char, c_int, c_void, size_t};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

/// The owner of counted bytes.
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

/// Bytes in use of one account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub bytes: usize,
    /// The maximum of `bytes`.
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
    // Not dropped with the thread: a destructor would have to be registered within an allocation.
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

/// While it exists, allocations of this thread are counted. It ends counting even if `work` panics.
struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        COUNTING.set(false);
        if let Some(book) = BOOK.take() {
            drop(ManuallyDrop::into_inner(book));
        }
    }
}

/// Runs `work` with `account` as the current account. Calls may be nested.
pub fn on<T>(account: Account, work: impl FnOnce() -> T) -> T {
    let _ends = On(CURRENT.replace(account));
    work()
}

/// The account to restore, even if `work` panics.
struct On(Account);

impl Drop for On {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// The figures of an account so far. All zero outside of [`count`].
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

/// Removes a block; returns its size and account if it was recorded.
fn leave(block: *mut c_void) -> Option<(usize, Account)> {
    with_book(|book| {
        let (size, account) = book.blocks.remove(&(block as usize))?;
        book.held[account as usize].bytes -= size;
        Some((size, account))
    })
    .flatten()
}

/// Records a block that was moved. It stays on its first account. If it could not be moved, the old block is still in
/// use.
fn enter_moved(old: *mut c_void, known: Option<(usize, Account)>, moved: *mut c_void, size: usize) {
    let account = known.map_or_else(|| CURRENT.get(), |known| known.1);
    on(account, || match known {
        // For a size of zero libc frees the block and may return null.
        Some((before, _)) if moved.is_null() && size > 0 => enter(old, before),
        _ => enter(moved, size),
    });
}

/// Runs `work` on the book. Its own allocations are not recorded.
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

/// Makes OpenSSL use this module's allocation functions. Returns whether it does, now or since an earlier call.
///
/// OpenSSL rejects them after its first allocation; its memory can then not be counted in this process.
pub fn install() -> bool {
    // OpenSSL's result never changes; concurrent threads wait for it.
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    // SAFETY: the functions keep the contract of malloc, realloc and free for blocks of each other, and never unwind,
    // because the functions that they call do not panic.
    *INSTALLED.get_or_init(|| unsafe { CRYPTO_set_mem_functions(malloc, realloc, free) } == 1)
}

/// Frees the memory of OpenSSL's error queue of this thread, which stores the source location of each error.
///
/// RSA decryption always leaves a cleared entry there. It belongs to the thread, not to a connection.
pub fn clear_errors() {
    // SAFETY: uses only this thread's own queue, which it creates if necessary.
    unsafe { openssl_sys::ERR_clear_error() };
}

unsafe extern "C" fn malloc(size: size_t, _: *const c_char, _: c_int) -> *mut c_void {
    // SAFETY: libc accepts any size; a null result is returned unchanged.
    let block = unsafe { libc::malloc(size) };
    if is_counting() {
        enter(block, size);
    }
    block
}

unsafe extern "C" fn realloc(block: *mut c_void, size: size_t, _: *const c_char, _: c_int) -> *mut c_void {
    let known = if is_counting() { leave(block) } else { None };
    // SAFETY: OpenSSL passes null or a block of these functions that it has not freed; libc allocated it.
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

/// Returns free memory to the system if the C library keeps it, as glibc does after many blocks were freed. Takes
/// milliseconds for a hundred megabytes.
pub fn release_free() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: affects only free blocks, and takes the locks of all arenas.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Rust's allocator with the same accounts. A program that counts its own memory makes this its
/// `#[global_allocator]`.
pub struct Counting;

// SAFETY: every call is forwarded unchanged to the system's allocator, whose contract is that of this trait; the book
// only records addresses and sizes, does not count its own allocations, and does not panic.
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
    fn allocations_are_counted_on_their_account() {
        count(|| {
            let client = on(Account::Client, || Vec::<u8>::with_capacity(1000));
            let mut server = on(Account::Server, || Vec::<u8>::with_capacity(10));
            // It grows on its first account, whichever account is current.
            on(Account::Client, || server.reserve_exact(500));
            assert_eq!(held(Account::Client), Held { bytes: 1000, peak_bytes: 1000 });
            assert_eq!(held(Account::Server).bytes, 500);
            drop(client);
            assert_eq!(held(Account::Client), Held { bytes: 0, peak_bytes: 1000 });
            // A nested count does not end the outer one.
            count(|| ());
            assert_eq!(held(Account::Server).bytes, 500);
        });
        assert_eq!(held(Account::Server), Held::default());
    }

    #[test]
    fn panic_ends_counting_and_restores_the_account() {
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
