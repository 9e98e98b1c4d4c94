//! The legal behaviours. How to add one: see the macro.

use crate::reference::styles::styles;

styles! {
    LongCallIds "long-call-ids" "A call_id is long, and contains blanks and punctuation." ["CL-TC-2"] excludes ["call-ids-are-uuids", "call-ids-are-digits"];
    UuidCallIds "call-ids-are-uuids" "A call_id is a UUID." ["CL-TC-2"] excludes ["call-ids-are-digits"];
    DigitCallIds "call-ids-are-digits" "A call_id consists of digits." ["CL-TC-1"];
    SmallPieces "small-pieces" "Tokens are one to three characters long; in a long text they are longer." ["CL-AMB-20"] excludes ["one-piece"];
    OnePiece "one-piece" "A short text comes as one token, a long one in a few." ["CL-AMB-20"];
    EmptyFinal "empty-final" "The final token is empty." ["CL-AMB-20"];
    EmptyFirst "empty-first" "A text begins with an empty token." ["CL-AMB-20"];
    OneByOne "one-call-at-a-time" "The second of two calls is made when the first is answered." ["CL-TC-8", "CL-HI-1"];
    CallsReversed "calls-reversed" "The calls of a response come in reverse order." ["CL-TC-8", "CL-HI-1"];
    CodeInField "code-in-a-field" "An error has its code in a field code, and not in its text." ["CL-AMB-01"] excludes ["error-code-in-a-field", "no-codes", "code-null"];
    ErrorCodeInField "error-code-in-a-field" "An error has its code in a field error_code, and not in its text." ["CL-AMB-01"] excludes ["no-codes", "code-null"];
    NoCodes "no-codes" "An error has no code, and its text is in Russian." ["CL-AMB-01", "CL-ER-1"] excludes ["code-null"];
    NullCode "code-null" "An error has a code that is null." ["CL-AMB-01"];
    BroadCode "one-code-for-all" "Every malformed message gets INVALID_FORMAT." ["CL-AMB-01", "CL-ER-8"];
    GivesUpInWords "gives-up-in-words" "A call that is not answered in time is reported by the assistant." ["CL-RC-3"];
    FailsInWords "fails-in-words" "A failure of the agent is reported by the assistant, in a complete text." ["CL-ER-9"] excludes ["closes-before-error"];
    ClosesBeforeError "closes-before-error" "An interrupted text gets a final token before the error." ["CL-AM-3", "CL-ER-9"];
    OtherWords "other-words" "The results of tools are passed to the model in another form." ["CL-HI-2", "CL-HI-5"];
    IdeRuns "ide-runs-what-is-approved" "The IDE runs approved calls, and sends their results." ["CL-AMB-02"];
    UsersOnly "roles-refused" "The roles assistant, system and tool are refused." ["CL-AMB-05"] warns ["CL-UM-6"];
    AnyResult "any-result" "A tool_result with both result and error is accepted, and so is one with neither." ["CL-AMB-06"] warns ["CL-ER-2"];
    EmptyEditApproves "empty-edit-approves" "An edit without modified_arguments approves the call unchanged." ["CL-AMB-07"];
    OpenDecisionIgnored "open-decision-ignored" "A decision about a call that needs none is ignored." ["CL-AMB-08"];
    EarlyResultIgnored "early-result-ignored" "A result of a call that awaits approval is ignored." ["CL-AMB-08"] excludes ["early-result-resolves"];
    EarlyResultResolves "early-result-resolves" "A result of a call that awaits approval resolves it, and the call does not run." ["CL-AMB-08"];
    StrayIgnored "second-answers-ignored" "A second result or decision is ignored." ["CL-TR-8", "CL-HI-11"];
    RefusesWhileBusy "refuses-while-busy" "A user_message during a turn is refused." ["CL-AMB-14"];
    NoMore "further-fields-refused" "A user_message with an undeclared field is refused." ["CL-AMB-11"];
    MoreFields "more-fields" "Every frame has a further field." ["CL-AMB-12"] warns ["CL-TRN-10"];
    Switches "switches-agents" "Each turn begins with agent_switched." ["CL-AMB-10", "CL-RC-9"];
    SwitchesBare "switches-bare" "agent_switched has no field other than type." ["CL-AMB-10"];
    ErrorForErrors "error-for-errors" "A result that is an error ends the turn with an error." ["CL-AMB-19"];
    RejectionEnds "rejection-ends" "After a rejection the gateway sends a short text of its own, and the turn is over." ["CL-HI-4"] warns ["CL-HI-5"];
    NothingKept "nothing-kept" "Messages that are sent while no client is connected are lost, and an open call is not reported again." ["CL-RC-8"] warns ["CL-RC-8"];
    TurnsEndWithClient "turns-end-with-the-client" "The turn ends when the last client disconnects." ["CL-RC-8"] warns ["CL-RC-8"];
    ShutsQuietly "barred-without-a-word" "A client that is not permitted gets only a close frame." ["CL-AMB-16"];
    NamelessTold "nameless-told" "A connection without a session id gets an error, and stays." ["CL-TRN-4"];
}
