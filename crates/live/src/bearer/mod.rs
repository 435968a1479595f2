//! Emulated bearers: a command in a namespace whose only way out is a link of ours.
