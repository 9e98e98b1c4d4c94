//! Keys of protocol files by their own names, wherever an extension stands: in the document, and in the patches of readings and dialects.

use serde_json::Value;

use super::extension::Extension;
use crate::source::{Diagnostics, Document, Renamer, escape_token, shape_of};

/// A protocol file or an overlay in which no key is called by its synonym.
///
/// # Errors
/// A map that has a key and its synonym.
pub(super) fn by_own_names(document: &Document) -> Result<Document, Diagnostics> {
    // What ships uses no synonyms.
    if document.is_shipped() {
        return Ok(document.clone());
    }
    let shape = shape_of::<Extension>()?;
    let mut renamer = Renamer::new(&shape.text);
    let mut value = (*document.value).clone();
    for at in extensions(&value) {
        if let Some(extension) = value.pointer_mut(&at) {
            renamer.rename(extension, &at);
        }
    }
    renamer.finish(document, value)
}

/// Where extensions stand.
fn extensions(document: &Value) -> Vec<String> {
    const OWN: &str = "/x-frameproof";
    let entries = |at: &str| {
        let keys = document.pointer(at).and_then(Value::as_object).into_iter().flat_map(|map| map.keys());
        keys.map(|key| format!("{at}/{}", escape_token(key))).collect::<Vec<_>>()
    };
    let readings =
        entries(&format!("{OWN}/readings")).into_iter().flat_map(|at| entries(&format!("{at}/patch")));
    let dialects = entries(&format!("{OWN}/dialects")).into_iter().map(|at| format!("{at}/patch"));
    let patches = readings.chain(dialects).map(|at| format!("{at}{OWN}"));
    std::iter::once(OWN.to_owned()).chain(patches).collect()
}
