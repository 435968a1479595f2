//! Names of alerts.

pub(crate) fn description(number: u8) -> String {
    shakedown_trace::alert::registered_name(number).map_or_else(|| format!("alert {number}"), str::to_owned)
}

pub(crate) fn level(number: u8) -> String {
    match number {
        1 => "warning".to_owned(),
        2 => "fatal".to_owned(),
        other => format!("level {other}"),
    }
}
