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
    BinaryFrames "binary-frames" "Responses are sent as binary messages." ["TV-TRN-1"];
    ClosesAfterTenPings "closes-after-ten-pings" "The connection is closed after ten pings." ["TV-TRN-3"];
    NoVersion "no-version" "Notifications lack jsonrpc." ["TV-TRN-4"];
    AnyVersion "any-version" "Requests of any version of JSON-RPC are carried out." ["TV-TRN-6"];
    IgnoresBadRequests "ignores-bad-requests" "A request that is none is ignored although it has an id." ["TV-TRN-6", "TV-TRN-7"];
    AnswersNotifications "answers-notifications" "Notifications are answered." ["TV-TRN-8"];
    IdsAsText "ids-as-text" "The id of a response is a string where the request has a number." ["TV-TRN-9"];
    NullIdsInErrors "null-ids-in-errors" "Errors bear the id null." ["TV-TRN-9"];
    AnswersTwice "answers-twice" "Every request is answered twice." ["TV-TRN-10"];
    ResultBesideError "result-beside-error" "An error response has a result too." ["TV-TRN-12"];
    NeitherResultNorError "neither-result-nor-error" "A response that says no more than ok says nothing at all." ["TV-TRN-12"];
    NotificationsHaveIds "notifications-have-ids" "Notifications bear an id." ["TV-TRN-13"];
    BareNames "bare-names" "Notifications are called data and pong." ["TV-TRN-14"];
    PrefixedSessions "prefixed-sessions" "Sessions are made by a tinyvex method only." ["TV-ACP-7", "TV-TRN-17"];
    ErrorCodesAsText "error-codes-as-text" "An error's code is a string." ["TV-ERR-1"];
    OneErrorCode "one-error-code" "Every error has the code -32603." ["TV-ERR-2", "TV-ERR-3", "TV-ERR-4", "TV-ERR-5", "TV-TRN-6", "TV-TRN-7"];
    UnknownMethodsAreFine "unknown-methods-are-fine" "An unknown method has the result null." ["TV-ERR-3"];
    IgnoresBrokenJson "ignores-broken-json" "What is no JSON is ignored." ["TV-ERR-4"];
    BrokenJsonCloses "broken-json-closes" "What is no JSON ends the connection." ["TV-ERR-4"];
    ScalarsAreParseErrors "scalars-are-parse-errors" "JSON that is no object is called a parse error." ["TV-ERR-5"];
    PathAsText "path-as-text" "data.path of an error is a string." ["TV-ERR-8"];
    ErrorsEndSubscriptions "errors-end-subscriptions" "An error ends the subscriptions of its connection." ["TV-ERR-9"];
    StreamErrorsAreNumbers "stream-errors-are-numbers" "The code of tinyvex/error is a number." ["TV-ERR-10"];
    FailsInSilence "fails-in-silence" "A stream that fails is not reported." ["TV-ERR-11"];
    PositionalParams "positional-params" "params that are no object are taken for none." ["TV-ERR-12"];
    ProtocolVersionAsText "protocol-version-as-text" "initialize returns its version as a string." ["TV-ACP-1"];
    AuthMethodsAreNames "auth-methods-are-names" "authMethods is a list of names." ["TV-ACP-2"];
    EchoesProtocolVersion "echoes-protocol-version" "initialize agrees to any version." ["TV-ACP-3"];
    AnyInitialize "any-initialize" "initialize needs no protocolVersion." ["TV-ACP-4"];
    WrapsSessions "wraps-sessions" "The result of session/new is wrapped in data." ["TV-ACP-5", "TV-ERR-7"];
    SessionIdsRepeat "session-ids-repeat" "session/new returns the newest session again." ["TV-ACP-6"];
    NeedsMcpServers "needs-mcp-servers" "session/new refuses an empty list of servers." ["TV-ACP-7"];
    PromptIsNotOk "prompt-is-not-ok" "session/prompt returns ok false." ["TV-ACP-9"];
    PromptMayBeText "prompt-may-be-text" "A prompt may be a string." ["TV-ACP-10"];
    PromptsUnknownSessions "prompts-unknown-sessions" "A prompt for an unknown session makes it." ["TV-ACP-11"];
    PromptsTheNewestSession "prompts-the-newest-session" "A prompt without session goes to the newest one." ["TV-ACP-30"];
    NoMessageChunks "no-message-chunks" "The agent's text is stored and not told." ["TV-ACP-12"];
    UpdatesHaveNoSession "updates-have-no-session" "session/update does not say which session." ["TV-ACP-13"];
    NamesAnotherSession "names-another-session" "session/update names the newest session." ["TV-ACP-14"];
    NoVariant "no-variant" "An update lacks sessionUpdate." ["TV-ACP-15"];
    ContentAsText "content-as-text" "The content of a chunk is a string." ["TV-ACP-16"];
    ToolCallsHaveNoTitle "tool-calls-have-no-title" "tool_call lacks its title." ["TV-ACP-17"];
    ToolStatusDone "tool-status-done" "A completed tool call has the status done." ["TV-ACP-18"];
    ToolCallsUnannounced "tool-calls-unannounced" "A tool call is updated without having been announced." ["TV-ACP-19"];
    PlanIsAText "plan-is-a-text" "The entries of a plan are a string." ["TV-ACP-20"];
    ModeHasNoId "mode-has-no-id" "current_mode_update has no currentModeId." ["TV-ACP-21"];
    IgnoresCancel "ignores-cancel" "session/cancel does nothing." ["TV-ACP-22"];
    CancelIsSpeltAsInAcp "cancel-is-spelt-as-in-acp" "session/cancel understands sessionId only." ["TV-ACP-22"];
    CancelEndsSession "cancel-ends-session" "A cancelled session takes no more prompts." ["TV-ACP-24"];
    CancelsEverything "cancels-everything" "session/cancel ends every prompt." ["TV-ACP-25"];
    ChunksOutOfOrder "chunks-out-of-order" "The chunks of a message come in the wrong order." ["TV-ACP-26"];
    RefusesLinks "refuses-links" "A prompt with a resource link is refused." ["TV-ACP-29"];
    NoFeatures "no-features" "connect returns no features." ["TV-CON-1"];
    MaxChunkBytesAsText "max-chunk-bytes-as-text" "features.maxChunkBytes is a string." ["TV-CON-2"];
    EmptyConnectionId "empty-connection-id" "connect returns an empty sessionId." ["TV-CON-3"];
    NowAsText "now-as-text" "nowTs is a string." ["TV-CON-4"];
    AnyClient "any-client" "connect needs no client." ["TV-CON-5"];
    AnySkew "any-skew" "connect takes a clockSkewHint of any type." ["TV-CON-6"];
    ConnectionIdsRepeat "connection-ids-repeat" "Every connection has the same sessionId." ["TV-CON-8"];
    StartSeqAsText "start-seq-as-text" "startSeq is a string." ["TV-SUB-1"];
    ValueBeforeResult "value-before-result" "The first value comes before the result of subscribe." ["TV-SUB-1"];
    AlwaysResumed "always-resumed" "Every subscription is called resumed." ["TV-RES-5", "TV-SUB-2"];
    NoInitialValue "no-initial-value" "A new subscription gets no value." ["TV-SUB-3"];
    NoValue "no-value" "tinyvex/data lacks its value." ["TV-SUB-4"];
    SeqStands "seq-stands" "seq does not grow past 3." ["TV-SUB-5"];
    SubIdsInLowerCase "sub-ids-in-lower-case" "subIds are told in lower case." ["TV-SUB-6"];
    StartSeqAhead "start-seq-ahead" "startSeq is ahead of the first seq." ["TV-SUB-7"];
    ParamsMayLack "params-may-lack" "subscribe without params is taken for params null." ["TV-SUB-8"];
    UnknownStreamsAreEmpty "unknown-streams-are-empty" "An unknown stream is accepted and shows null." ["TV-SUB-9"];
    UpdatesNobody "updates-nobody" "Streams are not updated." ["TV-MUT-4", "TV-SUB-10"];
    KeyOrderMatters "key-order-matters" "The order of keys in params makes another stream." ["TV-RES-10", "TV-SUB-11"];
    ComputesForEach "computes-for-each" "A stream is computed for every subscriber." ["TV-SUB-11", "TV-SUB-12"];
    KeysAreCut "keys-are-cut" "Streams are told apart by the first 22 letters of their params." ["TV-SUB-13"];
    ParamsAreTexts "params-are-texts" "Numbers and strings in params are the same." ["TV-SUB-23"];
    IgnoresListParams "ignores-list-params" "subscribe with params that are a list is never answered." ["TV-SUB-22", "TV-TRN-10"];
    UnsubscribeIsIgnored "unsubscribe-is-ignored" "unsubscribe does nothing." ["TV-SUB-14"];
    UnsubscribesAll "unsubscribes-all" "unsubscribe ends the stream for all of its subscribers." ["TV-SUB-15"];
    UnsubscribesNothing "unsubscribes-nothing" "unsubscribe without subId is fine." ["TV-SUB-16"];
    LongSubIdsAreGlobal "long-sub-ids-are-global" "Data for a subId of more than eight letters goes to the first connection that chose it." ["TV-SUB-18"];
    LeavingEndsStreams "leaving-ends-streams" "A lost connection ends its streams for the others too." ["TV-SUB-19"];
    ResumesNothing "resumes-nothing" "A resumed subscription does not get what it missed." ["TV-DUR-2", "TV-DUR-3", "TV-RES-2"];
    ResumeRepeats "resume-repeats" "A resumed subscription gets its last value again." ["TV-RES-3", "TV-RES-4"];
    AnyJournalWillDo "any-journal-will-do" "A subscription is resumed with any journal and any lastSeq." ["TV-RES-5"];
    WindowNeverEnds "window-never-ends" "A lastSeq that has expired is resumed without the values that are gone." ["TV-RES-2"];
    NeverResumes "never-resumes" "The journal that the server gave is never taken." ["TV-RES-6"];
    AnyCursor "any-cursor" "lastSeq and journal of a wrong type are taken for none." ["TV-RES-7"];
    JournalsAreNumbers "journals-are-numbers" "The journal is a number." ["TV-RES-6"];
    NoMutationValue "no-mutation-value" "The result of a mutation lacks value." ["TV-MUT-1"];
    OwnRequestIds "own-request-ids" "The result of a mutation has a requestId of the server's." ["TV-MUT-2"];
    LosesUpdates "loses-updates" "Mutations run side by side and overwrite each other." ["TV-MUT-3"];
    TellsTheAuthorOnly "tells-the-author-only" "Only the connection that mutates is told of the update." ["TV-MUT-4"];
    SendsUnchanged "sends-unchanged" "A value is sent although it has not changed." ["TV-MUT-5"];
    RequestIdsMayLack "request-ids-may-lack" "A mutation needs no requestId." ["TV-MUT-6"];
    UnknownMutationsAreFine "unknown-mutations-are-fine" "An unknown mutation has the value null." ["TV-MUT-7"];
    FailuresLeaveTraces "failures-leave-traces" "A mutation that fails halfway leaves half of it." ["TV-MUT-7"];
    ResultsDisagree "results-disagree" "mutate_result has another value than the response." ["TV-MUT-8"];
    ValueBesideError "value-beside-error" "mutate_result has both value and error." ["TV-MUT-8"];
    ActionsForgetTheirRequest "actions-forget-their-request" "The result of an action has a requestId of the server's." ["TV-MUT-9"];
    ActionsNeverFail "actions-never-fail" "An unknown or failing action has the value null." ["TV-MUT-10"];
    TokensCannotBeCleared "tokens-cannot-be-cleared" "auth.setToken with null is not ok." ["TV-AUT-1"];
    AnyToken "any-token" "auth.setToken takes anything for a token." ["TV-AUT-2"];
    PingLosesT "ping-loses-t" "The answer to ping lacks t." ["TV-PNG-1"];
    PingNeedsT "ping-needs-t" "ping without t is refused." ["TV-PNG-2"];
    PongsAreTexts "pongs-are-texts" "pong bears a t that is a string." ["TV-PNG-3"];
    AnyPing "any-ping" "ping takes a t of any type." ["TV-PNG-4"];
    ChunkPartsAreTexts "chunk-parts-are-texts" "The part of a chunk is a string." ["TV-CHK-2"];
    LastChunkIsMissing "last-chunk-is-missing" "The last chunk of a value is not sent." ["TV-CHK-3"];
    ChunkTotalsCountDown "chunk-totals-count-down" "The total of a chunk is the number of those still to come." ["TV-CHK-3"];
    ChunksReversed "chunks-reversed" "Chunks are numbered backwards." ["TV-CHK-4"];
    ChunksLoseText "chunks-lose-text" "A chunk lacks a letter." ["TV-CHK-4"];
    ChunksTooLarge "chunks-too-large" "Chunks are four times as large as announced." ["TV-CHK-5"];
    ChunksUnannounced "chunks-unannounced" "Chunks are sent although features.chunks is false." ["TV-CHK-5"];
    SeqStandsForChunks "seq-stands-for-chunks" "A value in chunks has the seq of the value before it." ["TV-CHK-6"];
    WrapsIntegers "wraps-integers" "Numbers are sent as {\"$integer\": \"1\"}." ["TV-PAY-1"];
    StoresAtTheEnd "stores-at-the-end" "A prompt's updates are stored when it is over." ["TV-DUR-1"];
    ForgetsPrompts "forgets-prompts" "The history lacks what the user said." ["TV-DUR-4"];
}
