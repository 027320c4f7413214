//! View of the API reference, generated from the OpenAPI description.

use std::sync::LazyLock;

use askama::Template;
use serde_json::Value;

use crate::api::openapi::description;
use crate::pages::shared::layout::PageLayout;

#[derive(Template, Clone, Debug)]
#[template(path = "reference.html")]
pub struct ReferencePage {
    pub shell: PageLayout,
    pub told: &'static ApiReference,
}

/// The reference, generated once per process.
pub static REFERENCE: LazyLock<ApiReference> = LazyLock::new(|| ApiReference::of(&description()));

/// Operations by tag, with types and problems.
#[derive(Clone, Debug)]
pub struct ApiReference {
    pub version: String,
    pub parts: Vec<ApiSection>,
    pub types: Vec<ApiMember>,
    /// Error statuses with their codes.
    pub problems: Vec<ApiStatusView>,
}

/// Operations with one tag.
#[derive(Clone, Debug)]
pub struct ApiSection {
    pub name: String,
    pub what: String,
    pub calls: Vec<ApiOperation>,
}

#[derive(Clone, Debug)]
pub struct ApiOperation {
    pub method: String,
    pub path: String,
    /// Operation id, which is also the anchor in the page.
    pub id: String,
    pub summary: String,
    pub description: String,
    /// Parameters and body.
    pub takes: Vec<ApiMember>,
    /// Success responses.
    pub answers: Vec<ApiMember>,
    /// Names of the error responses.
    pub failures: Vec<String>,
    pub examples: Vec<ApiExample>,
}

/// Example of a request body or a response.
#[derive(Clone, Debug)]
pub struct ApiExample {
    /// `body`, or the status of a response.
    pub name: String,
    pub json: String,
}

/// A parameter, member or type.
#[derive(Clone, Debug)]
pub struct ApiMember {
    pub name: String,
    /// Location of a parameter, or `required`.
    pub place: String,
    pub kind: ApiTypeLabel,
    pub what: String,
    pub members: Vec<ApiMember>,
}

/// Label of a type, with a link if the page describes the type.
#[derive(Clone, Debug, Default)]
pub struct ApiTypeLabel {
    /// Prefix such as `list of`.
    pub before: &'static str,
    pub name: String,
    /// Whether the page describes the type.
    pub described: bool,
    /// Suffix such as `or null`.
    pub after: &'static str,
}

/// An error status.
#[derive(Clone, Debug)]
pub struct ApiStatusView {
    pub name: String,
    pub what: String,
    pub codes: Vec<String>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

impl ApiReference {
    fn of(told: &Value) -> Self {
        let part = |tag: &Value| ApiSection {
            name: text(&tag["name"]),
            what: text(&tag["description"]),
            calls: calls(told, &tag["name"]),
        };
        let types = members(&told["components"]["schemas"]).map(|(name, it)| described(name, "", it));
        let problem = |(name, it): (&String, &Value)| {
            let codes = &it["content"]["application/problem+json"]["schema"]["allOf"][1]["properties"]["code"]["enum"];
            ApiStatusView { name: name.clone(), what: text(&it["description"]), codes: list(codes).map(text).collect() }
        };
        Self {
            version: text(&told["info"]["version"]),
            parts: list(&told["tags"]).map(part).collect(),
            types: types.collect(),
            problems: members(&told["components"]["responses"]).map(problem).collect(),
        }
    }
}

fn examples(call: &Value) -> Vec<ApiExample> {
    let answers = members(&call["responses"]).map(|(status, it)| (status.as_str(), &it["content"]));
    let all = [("body", &call["requestBody"]["content"])].into_iter().chain(answers);
    let one = |(name, content): (&str, &Value)| {
        let example = &content["application/json"]["example"];
        let json = serde_json::to_string_pretty(example).unwrap_or_default();
        (!example.is_null()).then(|| ApiExample { name: name.to_owned(), json })
    };
    all.filter_map(one).collect()
}

fn calls(told: &Value, tag: &Value) -> Vec<ApiOperation> {
    let all =
        members(&told["paths"]).flat_map(|(path, item)| members(item).map(move |(method, it)| (path, method, it)));
    // An operation belongs to its first tag only, so that it appears once.
    let own = all.filter(|(_, _, it)| it["tags"][0] == *tag);
    own.map(|(path, method, it)| {
        let parameter = |it: &Value| described(&text(&it["name"]), &text(&it["in"]), it);
        let mut takes: Vec<ApiMember> = list(&it["parameters"]).map(parameter).collect();
        for (_, body) in members(&it["requestBody"]["content"]) {
            takes.push(described("body", "", body));
        }
        // Error responses are shared components, so a reference marks them.
        let (good, bad): (Vec<_>, Vec<_>) = members(&it["responses"]).partition(|(_, it)| it["$ref"].is_null());
        ApiOperation {
            method: method.to_uppercase(),
            path: path.clone(),
            id: text(&it["operationId"]),
            summary: text(&it["summary"]),
            description: text(&it["description"]),
            takes,
            answers: good.into_iter().map(|(status, it)| answer(status, it)).collect(),
            // A reference names its component, so the path before the name is cut off.
            failures: bad.into_iter().map(|(_, it)| text(&it["$ref"]).replace("#/components/responses/", "")).collect(),
            examples: examples(it),
        }
    })
    .collect()
}

fn answer(status: &str, it: &Value) -> ApiMember {
    let first = members(&it["content"]).next();
    let kind = first.map(|(_, it)| kind(&it["schema"])).unwrap_or_default();
    ApiMember {
        name: status.to_owned(),
        place: String::new(),
        kind,
        what: text(&it["description"]),
        members: Vec::new(),
    }
}

fn described(name: &str, place: &str, it: &Value) -> ApiMember {
    // A parameter or body wraps its schema, but a type is its own schema.
    let schema = if it["schema"].is_null() { it } else { &it["schema"] };
    let of_one = list(&it["oneOf"]).map(|it| &it["description"]).find(|it| it.is_string());
    let what = it["description"].as_str().or(of_one.and_then(Value::as_str)).unwrap_or_default();
    let required: Vec<&str> = list(&schema["required"]).filter_map(Value::as_str).collect();
    let forms = list(&schema["oneOf"]).chain(list(&schema["allOf"])).chain([schema]);
    let inner = forms.flat_map(|it| members(&it["properties"])).map(|(name, it)| {
        let place = if required.contains(&name.as_str()) { "required" } else { "" };
        // One level is enough, because deeper members belong to types with their own entries.
        ApiMember { members: Vec::new(), ..described(name, place, it) }
    });
    let place = if it["required"] == true { format!("{place}, required") } else { place.to_owned() };
    ApiMember { name: name.to_owned(), place, kind: kind(schema), what: what.to_owned(), members: inner.collect() }
}

fn kind(schema: &Value) -> ApiTypeLabel {
    if let Some(to) = schema["$ref"].as_str() {
        let name = to.rsplit('/').next().unwrap_or_default().to_owned();
        return ApiTypeLabel { name, described: true, ..ApiTypeLabel::default() };
    }
    // A nullable reference is a `oneOf` with null, so the label comes from the other form.
    if let Some(one) = list(&schema["oneOf"]).find(|it| !it["$ref"].is_null()) {
        let null = list(&schema["oneOf"]).any(|it| it["type"] == "null");
        return ApiTypeLabel { after: if null { " or null" } else { "" }, ..kind(one) };
    }
    let words = |it: &Value| it.as_str().map(str::to_owned);
    let (name, null) = match &schema["type"] {
        // OpenAPI 3.1 writes a nullable type as a list of two types.
        Value::Array(all) => (all.iter().find(|it| **it != "null").and_then(words), true),
        one => (words(one), false),
    };
    match name.as_deref() {
        Some("array") => ApiTypeLabel { before: "list of ", ..kind(&schema["items"]) },
        Some(name) => {
            ApiTypeLabel { name: name.to_owned(), after: if null { " or null" } else { "" }, ..ApiTypeLabel::default() }
        }
        // A schema without a type accepts every value.
        None => ApiTypeLabel { name: "any JSON".to_owned(), ..ApiTypeLabel::default() },
    }
}
