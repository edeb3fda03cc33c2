//! Whether a value is as a JSON Schema says: the few words that the schemas kept in this repository use.
//!
//! Owns: `type`, `enum`, `properties`, `required`, `additionalProperties`, `items` and `$ref` into `$defs`; a
//! schema with any other word is refused. Must never: pass over a word that it does not know. Next: `kubernetes.rs`.

use serde_json::Value;

/// What only describes.
const SILENT: &[&str] = &["$schema", "title", "description", "$defs"];

/// What is wrong with `value`, each with its place; `root` holds the definitions.
pub fn faults(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (word, rule) in schema.as_object().expect("a schema is an object") {
        match word.as_str() {
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                found.extend(faults(root, &root["$defs"][name], value, at));
            }
            "type" if !has_type(rule, value) => found.push(format!("{at}: {value} is no {rule}")),
            "enum" if !rule.as_array().unwrap().contains(value) => {
                found.push(format!("{at}: {value} is none of {rule}"))
            }
            "required" => found.extend(missing(rule, value).map(|name| format!("{at}: {name} is missing"))),
            "properties" => {
                let known = value.as_object().into_iter().flatten();
                let known = known.filter_map(|(name, value)| Some((name, rule.get(name)?, value)));
                found.extend(known.flat_map(|(name, rule, value)| faults(root, rule, value, &format!("{at}.{name}"))));
            }
            "additionalProperties" => {
                let others = value.as_object().into_iter().flatten();
                let others = others.filter(|(name, _)| schema["properties"].get(name.as_str()).is_none());
                found.extend(others.flat_map(|(name, value)| match rule {
                    Value::Bool(false) => vec![format!("{at}.{name}: there is no such field")],
                    rule => faults(root, rule, value, &format!("{at}.{name}")),
                }));
            }
            "items" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                found.extend(items.flat_map(|(number, item)| faults(root, rule, item, &format!("{at}[{number}]"))));
            }
            "type" | "enum" => {}
            silent => assert!(SILENT.contains(&silent), "this checker does not know '{silent}'"),
        }
    }
    found
}

fn has_type(rule: &Value, value: &Value) -> bool {
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    match rule {
        Value::Array(names) => names.iter().any(|one| one == name),
        one => one == name,
    }
}

fn missing<'a>(names: &'a Value, value: &'a Value) -> impl Iterator<Item = &'a str> {
    let names = names.as_array().unwrap().iter().filter_map(Value::as_str);
    names.filter(|name| value.get(name).is_none())
}

#[test]
fn a_slip_in_a_value_is_found() {
    let schema = serde_json::json!({
        "$defs": {"name": {"type": "string"}},
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"$ref": "#/$defs/name"}, "b": {"type": "array", "items": {"enum": [1, 2]}}},
    });
    let count = |value| faults(&schema, &schema, &value, "it").len();
    assert_eq!(count(serde_json::json!({"a": "x", "b": [1, 2]})), 0);
    for bad in [
        serde_json::json!([]),
        serde_json::json!({}),
        serde_json::json!({"a": 1}),
        serde_json::json!({"a": "x", "b": [3]}),
        serde_json::json!({"a": "x", "c": 1}),
    ] {
        assert!(count(bad.clone()) > 0, "{bad}");
    }
}
