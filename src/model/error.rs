//! Errors as each provider words them.

use serde_json::{Value, json};

use super::api::Family;

/// What `retry-after` says of an overload where the cue does not, in milliseconds: short, so that a client's retries
/// do not slow a suite down.
const RETRY_MS: u64 = 100;

/// An answer with an HTTP error.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ApiError {
    pub status: u16,
    pub message: String,
    /// The field of the request that is wrong.
    pub param: Option<&'static str>,
    pub retry_after_ms: Option<u64>,
}

impl ApiError {
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        let retry_after_ms = matches!(status, 429 | 503 | 529).then_some(RETRY_MS);
        Self { status, message: message.into(), param: None, retry_after_ms }
    }

    /// A request that is wrong in this field.
    pub fn field(param: &'static str, message: impl Into<String>) -> Self {
        Self { param: Some(param), ..Self::new(400, message) }
    }

    /// The body in the words of the provider.
    pub fn body(&self, family: Family, request_id: &str) -> Value {
        match family {
            Family::OpenAi => json!({ "error": {
                "message": self.message, "type": self.openai_type(), "param": self.param, "code": self.code(),
            } }),
            Family::Anthropic => json!({
                "type": "error",
                "error": { "type": self.anthropic_type(), "message": self.message },
                "request_id": request_id,
            }),
        }
    }

    fn openai_type(&self) -> &'static str {
        match self.status {
            429 => "requests",
            500.. => "server_error",
            _ => "invalid_request_error",
        }
    }

    /// The code of OpenAI's error.
    pub fn code(&self) -> Option<&'static str> {
        match self.status {
            401 => Some("invalid_api_key"),
            429 => Some("rate_limit_exceeded"),
            _ => None,
        }
    }

    /// The code of a response that fails while it streams, which must be one of a closed list.
    pub fn response_code(&self) -> &'static str {
        match self.status {
            429 => "rate_limit_exceeded",
            400..=499 => "invalid_prompt",
            _ => "server_error",
        }
    }

    fn anthropic_type(&self) -> &'static str {
        match self.status {
            401 => "authentication_error",
            402 => "billing_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            504 => "timeout_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        }
    }
}
