//! The JSON Schema of the file, for editors.
//!
//! Owns: how a kind is said in JSON Schema. Must never: list a setting. Next: `table.rs`.

use super::kind::Kind;
use super::table::{Preset, SETTINGS, Setting};
use serde_json::{Map, Value, json};

/// The schema (draft 2020-12).
pub fn schema() -> Value {
    let mut top = Map::new();
    let mut sections: Vec<(&str, Map<String, Value>)> = Vec::new();
    // A secret does not stand in the file.
    for setting in SETTINGS.iter().filter(|setting| !matches!(setting.kind, Kind::Secret)) {
        let Some(section) = setting.section() else {
            top.insert(setting.key().to_owned(), one(setting));
            continue;
        };
        match sections.iter_mut().find(|(name, _)| *name == section) {
            Some((_, keys)) => {
                keys.insert(setting.key().to_owned(), one(setting));
            }
            None => sections.push((section, Map::from_iter([(setting.key().to_owned(), one(setting))]))),
        }
    }
    for (name, keys) in sections {
        let section = json!({"type": "object", "additionalProperties": false, "properties": keys});
        top.insert(name.to_owned(), section);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of a Fencepost server",
        "type": "object",
        "additionalProperties": false,
        "properties": top,
    })
}

fn one(setting: &Setting) -> Value {
    let mut schema = kind(&setting.kind);
    let Some(map) = schema.as_object_mut() else {
        return schema;
    };
    map.insert("description".to_owned(), json!(format!("{}.", setting.about)));
    if let Preset::Text(_) | Preset::Number(_) | Preset::Switch(_) = setting.preset {
        let value = setting.preset.value(&setting.kind);
        map.insert("default".to_owned(), value.map_or(Value::Null, |value| value.to_json()));
    }
    schema
}

fn kind(kind_of: &Kind) -> Value {
    match kind_of {
        Kind::Switch => json!({"type": "boolean"}),
        Kind::Number { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Duration { .. } => json!({
            "type": "string",
            "pattern": "^(([0-9]+(\\.[0-9]+)?(w|d|h|m|s|ms|us))+|P[0-9.WDTHMS]+)$",
        }),
        Kind::Path => json!({"type": "string", "minLength": 1}),
        Kind::Address | Kind::HostPort => json!({"type": "string", "pattern": "^.+:[0-9]+$"}),
        Kind::Name => json!({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$"}),
        Kind::Word(known) => json!({
            "type": "string",
            "enum": known.iter().map(|(word, _)| *word).collect::<Vec<_>>(),
        }),
        Kind::Range => json!({"type": "string", "pattern": "^.+/[0-9]+$"}),
        Kind::Secret => json!(false),
        Kind::List(one) => json!({"type": "array", "items": kind(one)}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_of_the_file_is_in_the_schema_with_its_default() {
        let schema = schema();
        for setting in SETTINGS {
            let pointer = match setting.section() {
                None => format!("/properties/{}", setting.key()),
                Some(section) => format!("/properties/{section}/properties/{}", setting.key()),
            };
            let found = schema.pointer(&pointer);
            if matches!(setting.kind, Kind::Secret) {
                assert_eq!(found, None, "{pointer}");
                continue;
            }
            let found = found.unwrap_or_else(|| panic!("{pointer} is missing"));
            assert!(found["description"].is_string() && found["type"].is_string(), "{found}");
            let is_unset = matches!(setting.preset, Preset::Unset(_));
            assert_eq!(found.get("default").is_none(), is_unset, "{found}");
            assert_ne!(
                found.get("default"),
                Some(&Value::Null),
                "the default of {pointer} does not read"
            );
        }
    }
}
