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
    let Some(live) = state.live.get(thread).filter(|_| state.is_received(thread, method)) else { return };
    let neighbour = state.neighbour(thread);
    live.behaviour.mutate(&mut params, |defect, params| match (defect, neighbour) {
        (Defect::DeltasAreTheNeighbours, Some((thread, turn))) if method.ends_with("/delta") => {
            (params["threadId"], params["turnId"]) = (json!(thread), json!(turn));
        }
        (Defect::CompletedItemsAreTheNeighbours, Some((thread, _))) if method == "item/completed" => {
            params["threadId"] = json!(thread);
        }
        (Defect::UsageIsTheNeighbours, Some((thread, turn))) if method == "thread/tokenUsage/updated" => {
            (params["threadId"], params["turnId"]) = (json!(thread), json!(turn));
        }
        (Defect::ItemsHaveNoTurn, _) if method == "item/started" || method == "item/completed" => {
            params["turnId"] = Value::Null;
        }
        _ => {}
    });
    state.publish(thread, method, &params);
}

/// What the user said, told and stored.
pub(super) fn user_message(state: &mut State, thread: &str, turn: &str, input: &[Value]) {
    let Some(live) = state.live.get(thread) else { return };
    let mut content = json!(input);
    live.behaviour.mutate(&mut content, |defect, content| match defect {
        Defect::UserMessagesAreText => *content = json!(text(input)),
        Defect::UserMessagesHaveTextOnly => {
            let kept = input.iter().filter(|part| part["type"] == "text");
            *content = kept.cloned().collect();
        }
        Defect::UserMessagesHaveTheFirstInput => *content = input.iter().take(1).cloned().collect(),
        _ => {}
    });
    let item = json!({ "type": "userMessage", "id": fresh("item"), "content": content });
    if live.behaviour.strikes(Defect::NoUserMessages) {
        return;
    }
    started(state, thread, turn, &item);
    completed(state, thread, turn, item);
}
