//! Enumerations whose values have a spelling.

/// Declares an enumeration with the spelling of each value.
#[macro_export]
macro_rules! spelled {
    ($(#[$outer:meta])* pub enum $name:ident { $($(#[$inner:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$outer])*
        pub enum $name { $($(#[$inner])* $value,)* }

        impl $name {
            /// Every value with its spelling, in the order of declaration.
            pub const ALL: [(Self, &'static str); [$($text),*].len()] = [$((Self::$value, $text)),*];

            /// The word used in files and on screen.
            pub const fn as_str(self) -> &'static str {
                Self::ALL[self as usize].1
            }

            /// The value with this spelling.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().find(|row| row.1 == name).map(|row| row.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }
    };
}
