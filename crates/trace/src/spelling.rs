//! Enumerations whose values have a spelling.

/// Declares an enumeration with the spelling of each value beside it.
#[macro_export]
macro_rules! spelled {
    ($(#[$outer:meta])* pub enum $name:ident { $($(#[$inner:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$outer])*
        pub enum $name { $($(#[$inner])* $value,)* }

        impl $name {
            /// Every value with its spelling, in this order.
            pub const ALL: [(Self, &'static str); [$($text),*].len()] = [$((Self::$value, $text)),*];

            /// The word used in files and on screen.
            pub const fn as_str(self) -> &'static str {
                Self::ALL[self as usize].1
            }
        }
    };
}
