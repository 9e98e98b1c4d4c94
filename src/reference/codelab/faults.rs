//! The deliberate defects, each with the requirements that it violates.

use crate::reference::Fault;

macro_rules! faults {
    ($($defect:ident $name:literal $title:literal [$($id:literal),*];)*) => {
        /// One defect. Consulted at the one place where it matters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Defect { $($defect),* }

        /// All faults, in the order of the areas that they concern.
        pub(in crate::reference) const FAULTS: &[Fault] =
            &[$(Fault { name: $name, title: $title, violates: &[$($id),*] }),*];

        impl Defect {
            pub(super) fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$defect),)* _ => None }
            }
        }
    };
}

faults! {
    BinaryFrames "binary-frames" "Everything is sent as binary messages." ["CL-TRN-5"];
    FramesInArrays "frames-in-arrays" "Every frame comes inside an array." ["CL-TRN-5"];
    ErrorUnderAnotherType "error-under-another-type" "Errors have the type failure." ["CL-TRN-7"];
    SaysDone "says-done" "A turn ends with a frame that the document does not know." ["CL-TRN-7"];
    TokenWithoutType "token-without-type" "Tokens have no type." ["CL-TRN-7"];
    TokenHasExtra "token-has-extra" "Tokens have a field content beside token." ["CL-TRN-10"];
    CutsSessionIds "cuts-session-ids" "Session ids are cut after nine characters, so that some sessions are one." ["CL-AM-9", "CL-TRN-3"];
    NamelessSession "nameless-session" "A connection without a session id is served." ["CL-TRN-4"];
    ExpiredIsFine "expired-is-fine" "An expired session is served." ["CL-ER-10"];
    UnauthorizedIsFine "unauthorized-is-fine" "An unauthorized client is served." ["CL-ER-11"];
    DeafWhileStreaming "deaf-while-streaming" "What comes while a response streams is not read." ["CL-TRN-9"];
    TokenUnderAnotherName "token-under-another-name" "A token stands in content instead of token." ["CL-AM-1", "CL-TRN-10"];
    FinalAsText "final-as-text" "is_final is a string." ["CL-AM-2", "CL-TRN-10"];
    FinalOnlyWhenTrue "final-only-when-true" "is_final is left out where it is false." ["CL-AM-2", "CL-TRN-10"];
    NothingIsFinal "nothing-is-final" "No token is final." ["CL-AM-3", "CL-TC-9"];
    EveryTokenIsFinal "every-token-is-final" "Every token is final." ["CL-AM-4"];
    FinalTwice "final-twice" "An empty final token follows the final token." ["CL-AM-4"];
    SaysAllAtOnce "says-all-at-once" "A response comes as one block." ["CL-AM-5", "CL-AM-6"];
    SaysAllAtTheEnd "says-all-at-the-end" "The tokens are held back until the response is complete." ["CL-AM-6"];
    LosesTokens "loses-tokens" "The third token is lost." ["CL-AM-7"];
    SwapsTokens "swaps-tokens" "The first two tokens change places." ["CL-AM-7"];
    TrimsTokens "trims-tokens" "Tokens lose their leading and trailing blanks." ["CL-AM-7"];
    AsciiOnly "ascii-only" "Characters beyond ASCII are lost." ["CL-UM-7"];
    TextBeforeCallsStaysOpen "text-before-calls-stays-open" "Text before a call has no final token." ["CL-TC-9"];
    DropsDottedCalls "drops-dotted-calls" "A call of a tool whose name has a dot is not passed on." ["CL-UM-1"];
    ContentMayBeMissing "content-may-be-missing" "A user_message without content is taken." ["CL-UM-2"];
    AnyContent "any-content" "A content that is no string is taken." ["CL-UM-3"];
    RoleIsRequired "role-is-required" "A user_message without role is refused." ["CL-UM-4"];
    AnyRole "any-role" "A role that is not in the list is taken." ["CL-UM-5"];
    UsersOnly "users-only" "Roles other than user are refused." ["CL-UM-6"];
    DedupesByText "dedupes-by-text" "The same text sent twice is answered once." ["CL-UM-9"];
    CallIdAsNumber "call-id-as-number" "call_id is a number." ["CL-TC-1", "CL-TRN-10"];
    CallIdsRepeat "call-ids-repeat" "All calls have the same call_id." ["CL-TC-2"];
    ToolUnderAnotherName "tool-under-another-name" "The tool stands in name instead of tool_name." ["CL-TC-3", "CL-TRN-10"];
    ArgumentsAsText "arguments-as-text" "arguments is a string that holds JSON." ["CL-TC-4", "CL-TRN-10"];
    NoApprovalFlag "no-approval-flag" "tool_call has no requires_approval." ["CL-TC-5", "CL-TRN-10"];
    NeverAsks "never-asks" "Dangerous calls say that they need no approval." ["CL-TC-6"];
    AlwaysAsks "always-asks" "Read-only calls say that they need approval." ["CL-TC-7"];
    DoesNotWaitForResults "does-not-wait-for-results" "The agent goes on without the result of its call." ["CL-TC-8"];
    DotsBecomeUnderscores "dots-become-underscores" "Dots in tool names become underscores." ["CL-TC-10"];
    ForgetsCallsAfterText "forgets-calls-after-text" "The result of a call that followed text does not resume the turn." ["CL-TR-1"];
    UnknownResultsAreIgnored "unknown-results-are-ignored" "A result of an unknown call is passed over in silence." ["CL-TR-2"];
    ResultWithoutCallIdIsIgnored "result-without-call-id-is-ignored" "A result without call_id is passed over in silence." ["CL-TR-3"];
    ErrorResultsStall "error-results-stall" "A result that is an error never reaches the agent." ["CL-TR-4"];
    ResultsAreLost "results-are-lost" "The agent does not get what a result holds." ["CL-TR-5"];
    AnyResultError "any-result-error" "A tool_result whose error is no string is taken." ["CL-TR-7"];
    AnswersAgain "answers-again" "A repeated result gets a second response." ["CL-TR-8"];
    ResultsByArrival "results-by-arrival" "Results are matched with calls by their arrival." ["CL-TR-9"];
    DoesNotWaitForCommands "does-not-wait-for-commands" "The agent goes on without the decision about a command." ["CL-HI-1"];
    ApprovedCallsDoNotRun "approved-calls-do-not-run" "An approved call does not run." ["CL-HI-2"];
    EditsAreIgnored "edits-are-ignored" "An edited call runs with its original arguments." ["CL-HI-3"];
    RejectedCallsRun "rejected-calls-run" "A rejected call runs all the same." ["CL-HI-4"];
    FeedbackIsLost "feedback-is-lost" "The feedback of a rejection does not reach the agent." ["CL-HI-5"];
    FeedbackIsRequired "feedback-is-required" "A rejection without feedback is refused." ["CL-HI-6"];
    AnyDecision "any-decision" "An unknown decision is taken for an approval." ["CL-HI-7"];
    DecisionMayBeMissing "decision-may-be-missing" "A missing decision is taken for an approval." ["CL-HI-8"];
    DecidesWithoutCallId "decides-without-call-id" "A decision without call_id decides the oldest call." ["CL-HI-9"];
    UnknownDecisionsAreIgnored "unknown-decisions-are-ignored" "A decision about an unknown call is passed over in silence." ["CL-HI-10"];
    DecidesAgain "decides-again" "A second decision gets a second response." ["CL-HI-11"];
    AnyModifiedArguments "any-modified-arguments" "modified_arguments that are no object are taken." ["CL-HI-12"];
    OneDecisionForAll "one-decision-for-all" "A decision decides every open call." ["CL-HI-13"];
    StuckAfterRejection "stuck-after-rejection" "After a rejection no user_message is answered." ["CL-HI-16"];
    ErrorWithoutContent "error-without-content" "An error says what is wrong in message instead of content." ["CL-ER-1", "CL-TRN-10"];
    BrokenJsonIsIgnored "broken-json-is-ignored" "What is no JSON is passed over in silence." ["CL-ER-2"];
    UnknownTypesAreIgnored "unknown-types-are-ignored" "An unknown type is passed over in silence." ["CL-ER-3"];
    MissingTypeIsIgnored "missing-type-is-ignored" "A message without type is passed over in silence." ["CL-ER-4"];
    NonObjectsAreIgnored "non-objects-are-ignored" "JSON that is no object is passed over in silence." ["CL-ER-5"];
    ClosesOnBrokenJson "closes-on-broken-json" "The connection is closed after what is no JSON." ["CL-ER-6"];
    ErrorEndsTurn "error-ends-turn" "An invalid message ends the turn that is under way." ["CL-ER-7"];
    WrongCode "wrong-code" "An unknown call_id is called TOOL_NOT_FOUND." ["CL-ER-8"];
    UnlistedCode "unlisted-code" "Errors have a code that is not in the list." ["CL-ER-8"];
    FailuresAreSilent "failures-are-silent" "A failure of the agent is not reported." ["CL-ER-9"];
    ServerTypesAreIgnored "server-types-are-ignored" "A message of a type that only servers send is passed over in silence." ["CL-ER-12"];
    CallsNeverTimeOut "calls-never-time-out" "An unanswered call is waited for without end." ["CL-RC-3"];
    ForgetsOnReconnect "forgets-on-reconnect" "A session begins anew with every connection." ["CL-RC-7", "CL-RC-8"];
    NothingIsBuffered "nothing-is-buffered" "What was said while no client was there is lost." ["CL-RC-8"];
    SwitchedWithoutText "switched-without-text" "agent_switched has a content that is no string." ["CL-RC-9"];
    SwitchingCloses "switching-closes" "A request for another agent closes the connection." ["CL-RC-10"];
}
