//! Items: how they are told, and what of them is stored.

use serde_json::{Value, json};

use super::faults::Defect;
use super::state::State;

/// An id for a turn or an item.
pub(super) fn fresh(kind: &str) -> String {
    format!("{kind}_{}", uuid::Uuid::new_v4().simple())
}

/// The texts of an input, as the model gets them.
pub(super) fn text(input: &[Value]) -> String {
    let texts = input.iter().filter_map(|part| part.get("text").and_then(Value::as_str));
    texts.collect::<Vec<_>>().join("\n")
}

/// The tokens of a text: its words.
pub(super) fn tokens(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

pub(super) fn started(state: &State, thread: &str, turn: &str, item: &Value) {
    publish(state, thread, turn, "item/started", json!({ "item": item }));
}

/// Tells that an item is complete, and stores it.
pub(super) fn completed(state: &mut State, thread: &str, turn: &str, item: Value) {
    publish(state, thread, turn, "item/completed", json!({ "item": item }));
    if let Some(turn) = state.threads.get_mut(thread).and_then(|thread| thread.turn(turn)) {
        turn.items.push(item);
    }
}

/// Tells something of a turn.
pub(super) fn publish(state: &State, thread: &str, turn: &str, method: &str, mut params: Value) {
    params["threadId"] = json!(thread);
    params["turnId"] = json!(turn);
    let Some(live) = state.live.get(thread) else { return };
    match live.behaviour.striking() {
        Some(Defect::DeltasAreTheNeighbours) if method.ends_with("/delta") => {
            if let Some((thread, turn)) = state.neighbour(thread) {
                (params["threadId"], params["turnId"]) = (json!(thread), json!(turn));
            }
        }
        Some(Defect::CompletedItemsAreTheNeighbours) if method == "item/completed" => {
            if let Some((thread, _)) = state.neighbour(thread) {
                params["threadId"] = json!(thread);
            }
        }
        Some(Defect::UsageIsTheNeighbours) if method == "thread/tokenUsage/updated" => {
            if let Some((thread, turn)) = state.neighbour(thread) {
                (params["threadId"], params["turnId"]) = (json!(thread), json!(turn));
            }
        }
        Some(Defect::ItemsHaveNoTurn) if method == "item/started" || method == "item/completed" => {
            params["turnId"] = Value::Null;
        }
        _ => {}
    }
    state.publish(thread, method, &params);
}

/// What the user said, told and stored.
pub(super) fn user_message(state: &mut State, thread: &str, turn: &str, input: &[Value]) {
    let defect = state.live.get(thread).and_then(|live| live.behaviour.striking());
    let content = match defect {
        Some(Defect::UserMessagesAreText) => json!(text(input)),
        Some(Defect::UserMessagesHaveTextOnly) => {
            let kept = input.iter().filter(|part| part["type"] == "text");
            kept.cloned().collect()
        }
        Some(Defect::UserMessagesHaveTheFirstInput) => input.iter().take(1).cloned().collect(),
        _ => json!(input),
    };
    let item = json!({ "type": "userMessage", "id": fresh("item"), "content": content });
    if defect == Some(Defect::NoUserMessages) {
        return;
    }
    started(state, thread, turn, &item);
    completed(state, thread, turn, item);
}
