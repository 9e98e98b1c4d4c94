//! The deliberate defects, each with the requirements that it violates. The rest of the table is in `more_faults`.

use super::more_faults::and_more;

and_more! {
    // ---- transport and JSON-RPC
    OriginsAreWelcome "origins-are-welcome" "An upgrade with an Origin is accepted." ["CX-TRN-5"];
    ProbesTakeOrigins "probes-take-origins" "GET /healthz with an Origin is answered with 200." ["CX-TRN-5"];
    NeverReady "never-ready" "GET /readyz is answered with 503." ["CX-TRN-3"];
    NoHealthProbe "no-health-probe" "GET /healthz is answered with 404." ["CX-TRN-4"];
    OwnOriginsAreWelcome "own-origins-are-welcome" "An upgrade with an Origin of the same host is accepted." ["CX-TRN-5"];
    BinaryFrames "binary-frames" "Messages are sent as binary frames." ["CX-TRN-1"];
    FramesAreLists "frames-are-lists" "The notification of the token usage comes as a list of one message." ["CX-TRN-1"];
    Versions "versions" "Messages have the member jsonrpc." ["CX-TRN-2"];
    AnswersTwice "answers-twice" "Requests for lists are answered twice." ["CX-RPC-1"];
    IdsAsText "ids-as-text" "The id of a response is a string where the request has a number." ["CX-RPC-1", "CX-RPC-2"];
    ResultBesideError "result-beside-error" "A refusal has a result, too." ["CX-RPC-3"];
    ErrorsHaveNoCode "errors-have-no-code" "A refusal has no code." ["CX-RPC-4"];
    NotificationsHaveIds "notifications-have-ids" "Notifications have an id." ["CX-RPC-5"];
    AnswersNotifications "answers-notifications" "Notifications are answered." ["CX-RPC-7"];
    InterruptInAnyCase "interrupt-in-any-case" "The method turn/interrupt is read regardless of letter case and blanks." ["CX-RPC-8"];
    UnderlinesAreSlashes "underlines-are-slashes" "The method turn_start is read as turn/start." ["CX-RPC-8"];
    UnknownMethodIsInvalid "unknown-method-is-invalid" "An unknown method is reported as an invalid request." ["CX-RPC-8"];
    BadParamsAreInvalidRequests "bad-params-are-invalid-requests" "Params of wrong types are reported as an invalid request." ["CX-RPC-9"];
    MissingParamsAreInternal "missing-params-are-internal" "Missing params are reported as an internal error." ["CX-RPC-19"];
    BrokenJsonIsIgnored "broken-json-is-ignored" "Text that is not JSON is ignored." ["CX-RPC-10"];
    BrokenJsonCloses "broken-json-closes" "Text that is not JSON ends the connection." ["CX-RPC-14"];
    NoRequestIsIgnored "no-request-is-ignored" "JSON that is not a request is ignored." ["CX-RPC-11"];
    ParamsAreNeeded "params-are-needed" "No method works without params." ["CX-LDD-3"];

    // ---- initialize
    NoUserAgent "no-user-agent" "initialize returns no user agent." ["CX-INI-2"];
    NoHome "no-home" "initialize returns an empty home." ["CX-INI-3"];
    NoPlatform "no-platform" "initialize returns no operating system." ["CX-INI-4"];
    InitializeIsNull "initialize-is-null" "The result of initialize is null." ["CX-INI-1"];
    InitializeIsEmpty "initialize-is-empty" "The result of initialize is empty." ["CX-INI-2", "CX-INI-3", "CX-INI-4"];
    WorksBeforeInitialize "works-before-initialize" "Everything works before initialize." ["CX-INI-16", "CX-INI-5", "CX-INI-6", "CX-INI-9"];
    ListsBeforeInitialize "lists-before-initialize" "Loaded threads are listed before initialize." ["CX-INI-16", "CX-INI-5", "CX-INI-9"];
    FilesBeforeInitialize "files-before-initialize" "fs works before initialize." ["CX-INI-6"];
    DoesBeforeInitialize "does-before-initialize" "fs is refused before initialize, but executed." ["CX-INI-6"];
    OtherWordsBeforeInitialize "other-words-before-initialize" "A request before initialize is refused with another message." ["CX-INI-16", "CX-INI-5"];
    InitializesTwice "initializes-twice" "A second initialize is answered." ["CX-INI-7"];
    OtherWordsForTheSecond "other-words-for-the-second" "A second initialize is refused with another message." ["CX-INI-7"];
    SecondAgreementCounts "second-agreement-counts" "A second initialize is refused, but its options take effect." ["CX-INI-8"];
    AnybodyMayInitialize "anybody-may-initialize" "initialize needs no clientInfo." ["CX-INI-12"];
    RefusedInitializeCounts "refused-initialize-counts" "A refused initialize initializes the connection." ["CX-INI-16"];

    // ---- opting out and in
    IgnoresOptOut "ignores-opt-out" "Opt-outs are ignored." ["CX-OPT-1", "CX-OPT-8"];
    OptsOutByPrefix "opts-out-by-prefix" "Opt-outs match a prefix of the name." ["CX-OPT-2", "CX-OPT-3"];
    WildcardsOptOut "wildcards-opt-out" "A name with a wildcard suppresses what it matches." ["CX-OPT-2", "CX-OPT-3"];
    NoOptOutOfItems "no-opt-out-of-items" "Items cannot be opted out of." ["CX-OPT-1", "CX-OPT-8"];
    OptOutIsForTheThread "opt-out-is-for-the-thread" "An item event that one client of a thread has opted out of is sent to none of its clients." ["CX-OPT-5"];
    OptOutOfRequests "opt-out-of-requests" "Requests of the server can be opted out of." ["CX-OPT-7"];
    ExperimentalMethodsForAll "experimental-methods-for-all" "Experimental methods need no opt-in." ["CX-EXP-1", "CX-EXP-5", "CX-EXP-6", "CX-INI-8"];
    ExperimentalIsNotNamed "experimental-is-not-named" "The refusal of an experimental method does not name it." ["CX-EXP-1"];
    ExperimentalFieldsForAll "experimental-fields-for-all" "Experimental fields need no opt-in." ["CX-EXP-2"];
    ExperimentalVariantsForAll "experimental-variants-for-all" "Experimental variants need no opt-in." ["CX-EXP-3"];

    // ---- threads
    ThreadsHaveNoProvider "threads-have-no-provider" "A thread has no modelProvider." ["CX-THR-2"];
    NewThreadsHaveAPreview "new-threads-have-a-preview" "The preview of a new thread is not empty." ["CX-THR-3"];
    StartedTwice "started-twice" "thread/started comes twice." ["CX-THR-6"];
    EphemeralHasAPath "ephemeral-has-a-path" "An ephemeral thread has a path." ["CX-THR-9"];
    AnyPersonality "any-personality" "Any personality is accepted." ["CX-THR-11"];
    TrustsNothing "trusts-nothing" "No project is marked as trusted." ["CX-THR-14"];
    StartIgnoresPolicy "start-ignores-policy" "thread/start ignores the approval policy." ["CX-THR-17", "CX-TUR-19"];
    ResumeForgetsTheModel "resume-forgets-the-model" "A resume uses the default model." ["CX-RES-8"];
    ResumeIgnoresOverrides "resume-ignores-overrides" "A resume ignores its overrides." ["CX-RES-6"];
    ResumeIsAnnounced "resume-is-announced" "A resume sends thread/started." ["CX-RES-2", "CX-THR-6"];
    ResumeIsToldToOthers "resume-is-told-to-others" "A resume announces the thread to its subscribers." ["CX-RES-2", "CX-THR-6"];
    ResumeReturnsNoTurns "resume-returns-no-turns" "A resume returns no turns." ["CX-RES-7"];
    ForksUnknown "forks-unknown" "A fork of an unknown thread starts a new one." ["CX-FRK-8"];
    ForksAreNeverEphemeral "forks-are-never-ephemeral" "A fork is never ephemeral." ["CX-FRK-7"];
    ForksAreEmpty "forks-are-empty" "A fork has no history." ["CX-FRK-5", "CX-FRK-6", "CX-FRK-9"];
    ForksNameNoSource "forks-name-no-source" "A fork does not name its source." ["CX-FRK-2"];
    ForkedTurnsStayOpen "forked-turns-stay-open" "The open turn of the source is open in the fork." ["CX-FRK-9"];
    ForkEndsTheTurn "fork-ends-the-turn" "A fork ends the turn of its source." ["CX-FRK-10"];
    ForkIsNotTold "fork-is-not-told" "A fork sends no thread/started." ["CX-FRK-3"];

    // ---- lists
    NoNextCursor "no-next-cursor" "A list has no nextCursor." ["CX-LST-1"];
    PagesAreTooLong "pages-are-too-long" "A page has one thread more than limit." ["CX-LST-3"];
    PagesOverlap "pages-overlap" "A page begins with the last thread of the previous one." ["CX-LST-4"];
    CursorsAreIgnored "cursors-are-ignored" "Every page is the first one." ["CX-LST-4"];
    AlwaysACursor "always-a-cursor" "The last page has a cursor." ["CX-LST-5"];
    NeverACursor "never-a-cursor" "No page has a cursor." ["CX-LST-4"];
    OldestFirst "oldest-first" "The oldest threads are listed first." ["CX-LST-4", "CX-LST-6"];
    AlwaysByCreation "always-by-creation" "The sort key is ignored." ["CX-LST-7"];
    AnySortKey "any-sort-key" "An unknown sort key is accepted." ["CX-LST-17"];
    ArchiveIsListed "archive-is-listed" "Archived threads are listed with the others." ["CX-ARC-3", "CX-DUR-5"];
    ArchivedListsAll "archived-lists-all" "The archive lists all threads." ["CX-ARC-6", "CX-LST-8"];
    CwdIsAPrefix "cwd-is-a-prefix" "cwd lists the threads below it, too." ["CX-LST-9"];
    SearchIgnoresCase "search-ignores-case" "The search ignores letter case." ["CX-LST-10"];
    ProvidersAreIgnored "providers-are-ignored" "modelProviders restricts nothing." ["CX-LST-11"];
    KindsAreIgnored "kinds-are-ignored" "sourceKinds restricts nothing." ["CX-LST-12"];
    EphemeralIsListed "ephemeral-is-listed" "Ephemeral threads are listed." ["CX-LST-15"];
    ListsHaveNoStatus "lists-have-no-status" "Every thread of a list is notLoaded." ["CX-LST-18"];
    ListsHaveNoNames "lists-have-no-names" "Threads of a list have no name." ["CX-DUR-5", "CX-NAM-4"];
    ListsHaveNoPreview "lists-have-no-preview" "Threads of a list have no preview." ["CX-LST-16"];
    LoadedThreadsAreObjects "loaded-threads-are-objects" "thread/loaded/list returns objects." ["CX-LDD-1"];
    StoredCountsAsLoaded "stored-counts-as-loaded" "thread/loaded/list returns all threads." ["CX-DUR-4", "CX-LDD-2", "CX-RD-4"];
    EphemeralIsNotLoaded "ephemeral-is-not-loaded" "thread/loaded/list returns no ephemeral threads." ["CX-LDD-1", "CX-LDD-2"];

    // ---- reading
    ReadAlwaysHasTurns "read-always-has-turns" "thread/read returns the turns without includeTurns." ["CX-RD-2"];
    ReadSubscribes "read-subscribes" "thread/read subscribes." ["CX-RD-5", "CX-TUR-20"];
    TurnsAreReadBackwards "turns-are-read-backwards" "Turns are read in reverse order." ["CX-RD-9", "CX-RES-3"];
    TurnsAreReadWithoutItems "turns-are-read-without-items" "Turns are read without their items." ["CX-DUR-3", "CX-FRK-5", "CX-RD-8"];
    CommandsAreNotRead "commands-are-not-read" "Turns are read without their commands." ["CX-RD-8"];
    UserMessagesAreNotRead "user-messages-are-not-read" "Turns are read without the user messages." ["CX-DUR-3", "CX-RD-3"];
    InterruptedIsReadAsCompleted "interrupted-is-read-as-completed" "An interrupted turn is read as completed." ["CX-FRK-9", "CX-INT-9"];
    ReadStatusIsIdle "read-status-is-idle" "An active thread is read as idle." ["CX-STA-8", "CX-STA-9"];

    // ---- names, the archive, subscriptions, metadata
    NameUpdatedIsEmpty "name-updated-is-empty" "thread/name/updated has no threadId." ["CX-NAM-2"];
    NamesAreToldToSubscribers "names-are-told-to-subscribers" "A name is reported only to subscribers." ["CX-NAM-3"];
    FirstNameStays "first-name-stays" "The first name of a thread stays." ["CX-NAM-4"];
    NamesAreUnique "names-are-unique" "A name that another thread has is refused." ["CX-NAM-1", "CX-NAM-5"];
    NamesLoadedOnly "names-loaded-only" "Only loaded threads can be named." ["CX-NAM-6"];
    NamesNeedATurn "names-need-a-turn" "A thread cannot be named before its first turn." ["CX-NAM-1"];
    NamesUnknown "names-unknown" "An unknown thread can be named." ["CX-NAM-7"];
    ArchiveIsNotTold "archive-is-not-told" "thread/archive sends no thread/archived." ["CX-ARC-2"];
    ArchivedHasNoThread "archived-has-no-thread" "thread/archived has no threadId." ["CX-ARC-2"];
    ArchivesUnknown "archives-unknown" "An unknown thread can be archived." ["CX-ARC-7"];
    ArchiveLeavesTheFile "archive-leaves-the-file" "Archiving leaves the file where it is." ["CX-ARC-9"];
    ArchivedStaysLoaded "archived-stays-loaded" "An archived thread stays loaded." ["CX-UNS-3"];
    UnarchiveIsNotTold "unarchive-is-not-told" "thread/unarchive sends no thread/unarchived." ["CX-ARC-5"];
    UnarchivesAnything "unarchives-anything" "A thread that is not archived can be unarchived." ["CX-ARC-8"];
    UnarchiveDoesNothing "unarchive-does-nothing" "thread/unarchive leaves the thread in the archive." ["CX-ARC-6"];
    UnarchiveForgets "unarchive-forgets" "thread/unarchive empties the thread." ["CX-ARC-6"];
    NotLoadedIsNotSubscribed "not-loaded-is-not-subscribed" "Unsubscribing from a thread that is not loaded returns notSubscribed." ["CX-UNS-3"];
    AlwaysUnsubscribed "always-unsubscribed" "Unsubscribing without a subscription returns unsubscribed." ["CX-UNS-2"];
    UnsubscribeIsEmpty "unsubscribe-is-empty" "thread/unsubscribe returns {}." ["CX-UNS-1"];
    UnsubscribeDoesNothing "unsubscribe-does-nothing" "thread/unsubscribe changes nothing." ["CX-UNS-2", "CX-UNS-4"];
    UnsubscribesEverybody "unsubscribes-everybody" "thread/unsubscribe ends all subscriptions of the thread." ["CX-UNS-1", "CX-UNS-7"];
    MetadataReplaces "metadata-replaces" "An update clears absent fields." ["CX-MET-2"];
    NullsKeepMetadata "nulls-keep-metadata" "Null does not clear a field of gitInfo." ["CX-MET-2"];
    EmptyMetadata "empty-metadata" "gitInfo without fields is an object." ["CX-MET-3"];
    MetadataIsNotStored "metadata-is-not-stored" "thread/metadata/update does not store its changes." ["CX-DUR-5", "CX-MET-1", "CX-MET-2"];

    // ---- shell, compaction, rollback
    CompactionHasNoItem "compaction-has-no-item" "A compaction has no item." ["CX-CMP-2"];
    CompactionChangesItsId "compaction-changes-its-id" "The item of a compaction is completed under another id." ["CX-ITM-1"];
    CompactionIsAnsweredLate "compaction-is-answered-late" "thread/compact/start is answered at the end of the compaction." ["CX-CMP-1"];
    ShellForUnknownThreads "shell-for-unknown-threads" "A user's command for an unknown thread is accepted." ["CX-SHL-5"];
    ShellIsTheAgents "shell-is-the-agents" "A user's command is reported as the agent's." ["CX-SHL-2", "CX-SHL-3"];
    ShellAlwaysHasItsTurn "shell-always-has-its-turn" "A user's command during a turn waits for a turn of its own." ["CX-SHL-3"];
    ShellIsSandboxed "shell-is-sandboxed" "A user's command runs in the thread's sandbox." ["CX-SHL-4"];
    ShellIsAskedAbout "shell-is-asked-about" "A user's command needs approval." ["CX-SHL-2", "CX-SHL-3", "CX-SHL-4"];
    RollsBackTheFirst "rolls-back-the-first" "A rollback drops the first turns." ["CX-RBK-1"];
    RollbackIsNotStored "rollback-is-not-stored" "Turns that were rolled back return." ["CX-RBK-2"];

    // ---- turns
    StartedNamesAnotherTurn "started-names-another-turn" "turn/started has an id that the turn does not have." ["CX-ITM-18", "CX-TUR-24", "CX-TUR-3"];
    TurnsStartCompleted "turns-start-completed" "turn/started has the status completed." ["CX-TUR-3"];
    TurnsStartTwice "turns-start-twice" "turn/started comes twice." ["CX-TUR-14", "CX-TUR-7"];
    TurnsEndTwice "turns-end-twice" "turn/completed comes twice." ["CX-TUR-4"];
    TurnsEndDone "turns-end-done" "A turn ends with the status done." ["CX-TUR-5"];
    TurnsOfUnknownThreads "turns-of-unknown-threads" "turn/start on an unknown thread is answered." ["CX-TUR-10"];
    InputMayBeMissing "input-may-be-missing" "turn/start needs no input." ["CX-TUR-11"];
    AnyInput "any-input" "Input of any type is accepted." ["CX-TUR-11"];
    ImagesAreRefused "images-are-refused" "Images are refused." ["CX-TUR-12"];
    ModelGetsTheFirstInput "model-gets-the-first-input" "The model gets only the first of several inputs." ["CX-TUR-9"];
    NoUserMessages "no-user-messages" "There are no userMessage items." ["CX-DUR-3", "CX-RD-3", "CX-STR-7", "CX-TUR-12", "CX-TUR-13", "CX-TUR-9"];
    UserMessagesAreText "user-messages-are-text" "The content of a userMessage is a string." ["CX-ITM-8"];
    UserMessagesHaveTextOnly "user-messages-have-text-only" "A userMessage has no images." ["CX-ITM-8", "CX-TUR-12"];
    UserMessagesHaveTheFirstInput "user-messages-have-the-first-input" "A userMessage has only the first of several inputs." ["CX-ITM-8", "CX-STR-7", "CX-TUR-12", "CX-TUR-9"];
    TurnsOverlap "turns-overlap" "A turn starts while another one of its thread is active." ["CX-TUR-14"];
    OverridesAreForOneTurn "overrides-are-for-one-turn" "Overrides of a turn apply only to that turn." ["CX-TUR-16"];
    TurnIgnoresCwd "turn-ignores-cwd" "turn/start ignores cwd." ["CX-TUR-18"];
    TurnIgnoresSandbox "turn-ignores-sandbox" "turn/start ignores the sandbox policy." ["CX-TUR-25"];
    NeverIsAsked "never-is-asked" "With the policy never, commands need approval." ["CX-RES-6", "CX-THR-17", "CX-TUR-16", "CX-TUR-19"];
    TurnsEndWithTheirClient "turns-end-with-their-client" "A turn ends when it has no more subscribers." ["CX-UNS-5"];

    // ---- steering and interrupting
    SteersAnyTurn "steers-any-turn" "turn/steer needs no expectedTurnId." ["CX-STR-3", "CX-STR-5"];
    SteersAnotherTurn "steers-another-turn" "turn/steer accepts any expectedTurnId." ["CX-STR-5"];
    SteersNothing "steers-nothing" "turn/steer without a turn is answered." ["CX-STR-4"];
    SteersUnknownThreads "steers-unknown-threads" "turn/steer on an unknown thread is answered." ["CX-STR-9"];
    SteerRefusedAsParams "steer-refused-as-params" "A refused turn/steer has the error code of invalid params." ["CX-STR-4", "CX-STR-5"];
    SteerReturnsAnotherTurn "steer-returns-another-turn" "turn/steer returns another turnId." ["CX-STR-1"];
    SteerStartsATurn "steer-starts-a-turn" "turn/steer sends turn/started." ["CX-STR-2", "CX-TUR-14"];
    SteerAddsNothing "steer-adds-nothing" "turn/steer adds nothing." ["CX-STR-7"];
    InterruptIsNotAnswered "interrupt-is-not-answered" "turn/interrupt is not answered." ["CX-INT-1", "CX-INT-7", "CX-RPC-1"];
    InterruptNeedsNoTurn "interrupt-needs-no-turn" "turn/interrupt needs no turnId." ["CX-INT-8"];
    InterruptsAnyTurn "interrupts-any-turn" "turn/interrupt accepts any turnId." ["CX-INT-3"];
    OnlyTheFirstInterrupts "only-the-first-interrupts" "Only the first subscriber can interrupt." ["CX-INT-7"];
    InterruptWaitsForCommands "interrupt-waits-for-commands" "An interrupted turn waits for the end of its command." ["CX-INT-2"];

    // ---- items
    MessagesAreNotStarted "messages-are-not-started" "A message has no item/started." ["CX-ITM-1", "CX-ITM-2"];
    BrokenOffMessagesStayOpen "broken-off-messages-stay-open" "An interrupted message is not completed." ["CX-ITM-3"];
    MessagesAreCompletedTwice "messages-are-completed-twice" "A message is completed twice." ["CX-ITM-4"];
    DeltasAfterTheEnd "deltas-after-the-end" "A delta follows the end of its message." ["CX-ITM-2"];
    DeltasAreTrimmed "deltas-are-trimmed" "White space around a delta is removed." ["CX-ITM-5"];
    DeltasAreAscii "deltas-are-ascii" "Deltas have question marks instead of characters beyond ASCII." ["CX-ITM-5"];
    DeltasAreCumulative "deltas-are-cumulative" "A delta is the text so far." ["CX-ITM-5", "CX-ITM-6"];
    ItemsHaveNoType "items-have-no-type" "Reasoning has no type." ["CX-ITM-7"];
    MessagesHaveNoText "messages-have-no-text" "A message has no text." ["CX-ITM-9"];
    ReasoningHasNoContent "reasoning-has-no-content" "Reasoning has no content." ["CX-ITM-10"];
    ReasoningHasNoIndex "reasoning-has-no-index" "Deltas of the reasoning have no index." ["CX-ITM-21"];
    MessagesChangeTheirType "messages-change-their-type" "A message is completed with the type of a plan." ["CX-ITM-19"];
    UnknownItems "unknown-items" "Reasoning is of an unknown type." ["CX-ITM-10", "CX-ITM-22"];
    ItemIdsRepeat "item-ids-repeat" "All messages of a turn have the same id." ["CX-ITM-17", "CX-ITM-19"];
    ItemsHaveNoTurn "items-have-no-turn" "Items have no turnId." ["CX-ITM-18", "CX-ITM-20"];
    CommandsHaveNoFolder "commands-have-no-folder" "A command has no cwd." ["CX-ITM-11"];
    CommandsStartCompleted "commands-start-completed" "A command starts with the status completed." ["CX-ITM-25"];
    CommandsAreDone "commands-are-done" "A command ends with the status done." ["CX-ITM-12", "CX-ITM-28"];
    CommandsStayInProgress "commands-stay-in-progress" "A command is completed with the status inProgress." ["CX-ITM-14", "CX-ITM-28"];
    NoExitCodes "no-exit-codes" "A command has no exit code." ["CX-ITM-13"];
    NoDurations "no-durations" "A command has no duration." ["CX-ITM-13"];
    OutputIsCut "output-is-cut" "The output of a command is cut after the first line." ["CX-ITM-15", "CX-ITM-26"];
    FirstOutputIsNotTold "first-output-is-not-told" "The first output of a command is in no delta." ["CX-ITM-15"];
    ChangesHaveNoDiff "changes-have-no-diff" "A change of a file has no diff." ["CX-ITM-16"];
    NoTurnDiff "no-turn-diff" "A change of files is not followed by the turn's diff." ["CX-ITM-23"];
    TurnDiffIsEmpty "turn-diff-is-empty" "The turn's diff is empty." ["CX-ITM-23"];
    NoPlans "no-plans" "The plan is not sent." ["CX-ITM-24"];
    PlanStatusesAreTheModels "plan-statuses-are-the-models" "The statuses of a plan have the model's spelling." ["CX-ITM-24"];

    // ---- status and usage
    StatusIsAText "status-is-a-text" "A status is a string instead of an object." ["CX-STA-2"];
    StatusHasNoThread "status-has-no-thread" "thread/status/changed has no threadId." ["CX-STA-1"];
    NeverActive "never-active" "The change of a thread to active is not reported." ["CX-STA-3", "CX-STA-5"];
    NeverIdle "never-idle" "The change of a thread to idle is not reported." ["CX-STA-4"];
    StatusTwice "status-twice" "The change of a thread to idle is reported twice." ["CX-STA-5"];
    FailedStaysActive "failed-stays-active" "A thread whose turn has failed stays active." ["CX-STA-10"];
    InterruptedStaysActive "interrupted-stays-active" "A thread whose turn was interrupted stays active." ["CX-STA-4", "CX-STA-8"];
    NoUsage "no-usage" "The token usage is not reported." ["CX-USE-1"];
    UsageHasNoTotal "usage-has-no-total" "The token usage has no total." ["CX-USE-2"];
    TotalsAreTheLast "totals-are-the-last" "The total is that of the last response." ["CX-USE-3"];
    UsageDoesNotAddUp "usage-does-not-add-up" "Input and output tokens do not add up to the total." ["CX-USE-4"];

    // ---- errors of the model
    FailsInSilence "fails-in-silence" "An error of the model is not reported by error." ["CX-ERR-1"];
    FailedIsCompleted "failed-is-completed" "A failed turn ends with the status completed." ["CX-ERR-2", "CX-TUR-4"];
    FailedHasNoError "failed-has-no-error" "A failed turn has no error." ["CX-ERR-3"];
    ErrorsDiffer "errors-differ" "error and the failed turn have different errors." ["CX-ERR-3", "CX-ERR-4"];
    ErrorsAreUnknown "errors-are-unknown" "codexErrorInfo is not a listed variant." ["CX-ERR-5"];
    NoHttpStatus "no-http-status" "The HTTP status of the provider is not reported." ["CX-ERR-6"];
    BadRequestIsOther "bad-request-is-other" "The status 400 of a provider is reported as other." ["CX-ERR-9"];
    CompletedHasAnError "completed-has-an-error" "A completed turn has an error." ["CX-ERR-11"];

    // ---- approvals
    AsksEverybody "asks-everybody" "Connections that are not subscribed get approval requests, too." ["CX-APR-2", "CX-APR-26", "CX-FCH-2"];
    CommandsAreShownAfterTheRequest "commands-are-shown-after-the-request" "The item of a command starts after its approval request." ["CX-APR-2", "CX-FCH-2", "CX-ITM-1"];
    RequestsHaveNoId "requests-have-no-id" "A request has no id." ["CX-RPC-6"];
    RequestsHaveNoTurn "requests-have-no-turn" "A request has no turnId." ["CX-APR-3", "CX-DYN-1"];
    RequestsNameAnotherItem "requests-name-another-item" "A request names an item that does not exist." ["CX-APR-2", "CX-FCH-2"];
    RequestsHaveNoCommand "requests-have-no-command" "A request has no command." ["CX-APR-4"];
    RequestsHaveNoReason "requests-have-no-reason" "A request has no reason." ["CX-APR-5"];
    UnknownDecisionsAreOffered "unknown-decisions-are-offered" "A request offers an unlisted decision." ["CX-APR-22"];
    AdditionalPermissions "additional-permissions" "A request has experimental permissions." ["CX-APR-23"];
    AcceptIsForSession "accept-is-for-session" "accept applies to the session." ["CX-APR-20"];
    SessionIsOnce "session-is-once" "acceptForSession applies once." ["CX-APR-7", "CX-FCH-7"];
    SessionIsForAllCommands "session-is-for-all-commands" "acceptForSession of one command allows all commands." ["CX-APR-7"];
    AmendmentsAreForgotten "amendments-are-forgotten" "A rule that was amended is forgotten." ["CX-APR-10"];
    DeclineIsRemembered "decline-is-remembered" "A declined command needs no approval when it comes again, and runs." ["CX-APR-8"];
    DeclinedIsCompleted "declined-is-completed" "A declined command stays in progress." ["CX-ITM-28"];
    CancelDeclines "cancel-declines" "cancel has the effect of decline: the turn continues." ["CX-APR-9", "CX-FCH-5"];
    CancelAccepts "cancel-accepts" "cancel has the effect of accept." ["CX-APR-9", "CX-FCH-5"];
    ErrorsAllow "errors-allow" "An error as the answer allows the command." ["CX-APR-18"];
    NoDecisionAllows "no-decision-allows" "An answer without a decision allows the command." ["CX-APR-19"];
    UnknownDecisionsAllow "unknown-decisions-allow" "Any decision but decline and cancel allows the command." ["CX-APR-19"];
    DecisionsIgnoreCase "decisions-ignore-case" "A decision in capital letters is accepted." ["CX-APR-19"];
    TrueAllows "true-allows" "The decision true allows the command." ["CX-APR-19"];
    ResolvesTwice "resolves-twice" "serverRequest/resolved comes twice." ["CX-APR-13"];
    ResolvesLate "resolves-late" "serverRequest/resolved comes after the item." ["CX-APR-11", "CX-APR-12", "CX-APR-16", "CX-FCH-6"];
    ResolvesAsText "resolves-as-text" "requestId is a string where the id is a number." ["CX-APR-11", "CX-APR-13", "CX-APR-14"];
    ResolvesAnotherThread "resolves-another-thread" "serverRequest/resolved names another thread." ["CX-APR-11", "CX-APR-14", "CX-APR-16"];
    InterruptResolvesNothing "interrupt-resolves-nothing" "An interrupt does not resolve the request." ["CX-APR-11", "CX-APR-16"];
    InterruptedCommandsStayOpen "interrupted-commands-stay-open" "A pending command is not completed after an interrupt." ["CX-ITM-3"];
    AnswersOfAnyType "answers-of-any-type" "An answer whose id has another type is accepted." ["CX-APR-14"];
    StrangersMayAnswer "strangers-may-answer" "The answer of any connection is accepted." ["CX-RPC-15"];
    ChangesAreNotAskedAbout "changes-are-not-asked-about" "Changes of files need no approval." ["CX-FCH-1"];
    ChangesAreNotShown "changes-are-not-shown" "The item of a change that needs approval is not sent." ["CX-FCH-2", "CX-ITM-16"];
    ChangesBeforeTheAnswer "changes-before-the-answer" "A change is made before the answer." ["CX-FCH-1", "CX-FCH-4", "CX-FCH-5"];
    DeclinedChangesAreMade "declined-changes-are-made" "A declined change is made." ["CX-FCH-4"];
    DeclinedChangesFail "declined-changes-fail" "A declined change has the status failed." ["CX-FCH-4"];
    CancelledChangesAreMade "cancelled-changes-are-made" "A cancelled change is made." ["CX-FCH-5"];
    ChangesAreAcceptedOnce "changes-are-accepted-once" "acceptForSession of a change applies once." ["CX-FCH-7"];
    FailedChangesAreCompleted "failed-changes-are-completed" "A change that cannot be applied has the status completed." ["CX-FCH-8"];
    ToolCallsAreShownLate "tool-calls-are-shown-late" "A tool of the client is called before its item starts." ["CX-DYN-1"];

    // ---- files
    MissingFilesAreEmpty "missing-files-are-empty" "A missing file is read as an empty one." ["CX-FS-20"];
    FilesAreText "files-are-text" "A file that is not UTF-8 is changed by reading it." ["CX-FS-4"];
    LargeFilesAreCut "large-files-are-cut" "A file is read only up to 8 KiB." ["CX-FS-4"];
    WritesAppend "writes-append" "Writing appends." ["CX-FS-3", "CX-FS-4"];
    EmptyWritesAreIgnored "empty-writes-are-ignored" "Writing nothing leaves the file as it is." ["CX-FS-4"];
    AnyBase64 "any-base64" "Data that is not base64 is written undecoded." ["CX-FS-19"];
    ParentsAreNotMade "parents-are-not-made" "Missing parents are created only with recursive true." ["CX-FS-5"];
    ParentsAreAlwaysMade "parents-are-always-made" "Missing parents are created although recursive is false." ["CX-FS-6"];
    FoldersAreFiles "folders-are-files" "A directory is reported as a file." ["CX-FS-8"];
    TimesAreSeconds "times-are-seconds" "Times are sent in seconds." ["CX-FS-9"];
    ModifiedIsCreated "modified-is-created" "A change does not affect modifiedAtMs." ["CX-FS-9"];
    FoldersListThemselves "folders-list-themselves" "A directory lists itself." ["CX-FS-10"];
    MissingFoldersAreEmpty "missing-folders-are-empty" "A missing directory is listed as an empty one." ["CX-FS-20"];
    TreesAreNotRemoved "trees-are-not-removed" "A tree is removed only with recursive true." ["CX-FS-12"];
    AlwaysRemovesTrees "always-removes-trees" "A tree is removed although recursive is false." ["CX-FS-13"];
    MissingIsAlwaysRemoved "missing-is-always-removed" "Removing a missing path succeeds although force is false." ["CX-FS-14"];
    MissingIsNeverRemoved "missing-is-never-removed" "Removing a missing path is always refused." ["CX-FS-14"];
    CopyMoves "copy-moves" "fs/copy moves the file." ["CX-FS-15"];
    AlwaysCopiesTrees "always-copies-trees" "A tree is copied without recursive." ["CX-FS-16"];
    CopyLeavesAFolder "copy-leaves-a-folder" "A refused copy of a tree leaves an empty directory." ["CX-FS-16"];
    CopyFollowsLinks "copy-follows-links" "A copy of a tree has files instead of links." ["CX-FS-27"];
    RelativePathsAreFine "relative-paths-are-fine" "A relative path is resolved from the root." ["CX-FS-18"];
    WatchReturnsTheName "watch-returns-the-name" "fs/watch returns the name of the file." ["CX-FS-21"];
    ChangesAreNotTold "changes-are-not-told" "Changes are not reported." ["CX-FS-22", "CX-FS-24", "CX-FS-25"];
    ChangesAreRelative "changes-are-relative" "Changed paths are file names." ["CX-FS-26"];
    ChangesNameTheFolder "changes-name-the-folder" "The changed path of a file is its directory." ["CX-FS-26"];
    ChangesAreToldToAll "changes-are-told-to-all" "Changes are reported to all connections." ["CX-FS-24"];
    UnwatchDoesNothing "unwatch-does-nothing" "fs/unwatch has no effect." ["CX-FS-23"];
    UnwatchEndsAll "unwatch-ends-all" "fs/unwatch ends all watches of the connection." ["CX-FS-22"];
    UnwatchReachesOthers "unwatch-reaches-others" "fs/unwatch ends watches of other connections." ["CX-FS-24"];

    // ---- command/exec
    ExecHasNoStderr "exec-has-no-stderr" "The result has no stderr." ["CX-EXE-1"];
    StreamsAreMixed "streams-are-mixed" "Output on stderr is returned as stdout." ["CX-EXE-10", "CX-EXE-2"];
    EmptyCommandsRun "empty-commands-run" "An empty command is accepted." ["CX-EXE-3"];
    EnvReplaces "env-replaces" "env replaces the environment." ["CX-EXE-5"];
    EnvIsIgnored "env-is-ignored" "env is ignored." ["CX-EXE-5"];
    NullsAreEmpty "nulls-are-empty" "A variable that env sets to null is set to an empty string." ["CX-EXE-6"];
    TimeoutsAreIgnored "timeouts-are-ignored" "timeoutMs is ignored." ["CX-EXE-7"];
    TimeoutsMayContradict "timeouts-may-contradict" "disableTimeout with timeoutMs is accepted." ["CX-EXE-8"];
    CapsMayContradict "caps-may-contradict" "disableOutputCap with outputBytesCap is accepted." ["CX-EXE-9"];
    CapsAreIgnored "caps-are-ignored" "outputBytesCap is ignored." ["CX-EXE-10", "CX-EXE-27"];
    CapIsShared "cap-is-shared" "outputBytesCap limits both streams together." ["CX-EXE-10"];
    NoDefaultCap "no-default-cap" "Without outputBytesCap the output is unlimited." ["CX-EXE-11"];
    CapIsAlwaysThere "cap-is-always-there" "disableOutputCap is ignored." ["CX-EXE-12"];
    StreamsNeedNoProcess "streams-need-no-process" "Streams need no processId." ["CX-EXE-13"];
    SizeNeedsNoTerminal "size-needs-no-terminal" "size needs no tty." ["CX-EXE-14"];
    StreamedOutputIsRepeated "streamed-output-is-repeated" "Streamed output is repeated in the response." ["CX-EXE-16", "CX-EXE-28"];
    DeltasAreAllStdout "deltas-are-all-stdout" "Output deltas of stderr are reported as stdout." ["CX-EXE-18"];
    WritesOfNothing "writes-of-nothing" "A write with neither data nor closeStdin is accepted." ["CX-EXE-20"];
    TerminateDoesNothing "terminate-does-nothing" "command/exec/terminate has no effect." ["CX-EXE-21", "CX-EXE-33"];
    TerminateEndsAll "terminate-ends-all" "command/exec/terminate ends all processes of the connection." ["CX-EXE-21"];
    TerminatedSucceeds "terminated-succeeds" "A terminated process has the exit code 0." ["CX-EXE-21"];
    EndedProcessesTakeAll "ended-processes-take-all" "write, resize and terminate are accepted for a process that does not run." ["CX-EXE-20", "CX-EXE-22", "CX-EXE-23", "CX-EXE-24"];
    AnythingIsResized "anything-is-resized" "A process without a terminal can be resized." ["CX-EXE-23"];
    ProcessesAreShared "processes-are-shared" "Another connection can write to a process and end it." ["CX-EXE-24"];
    ProcessesOutliveTheirConnection "processes-outlive-their-connection" "A process outlives its connection." ["CX-EXE-26"];
    CapIsNotTold "cap-is-not-told" "capReached is never true." ["CX-EXE-27"];
    TerminalsHaveStderr "terminals-have-stderr" "Output of a terminal is reported as stderr, too." ["CX-EXE-28"];
    NoTerminals "no-terminals" "tty gives no terminal." ["CX-EXE-28", "CX-EXE-29"];
    SizeIsIgnored "size-is-ignored" "size is ignored." ["CX-EXE-29"];
    ResizeDoesNothing "resize-does-nothing" "command/exec/resize has no effect." ["CX-EXE-29"];
    ExecHasNoSandbox "exec-has-no-sandbox" "Commands run without a sandbox." ["CX-EXE-30"];
    ExecNeverWrites "exec-never-writes" "Commands may never write." ["CX-EXE-30"];
    WorkspaceIsEverything "workspace-is-everything" "workspaceWrite allows a command to write everywhere." ["CX-EXE-30"];
    ExecStartsAThread "exec-starts-a-thread" "command/exec starts a thread." ["CX-EXE-31"];
    BufferedCommandsAreNotEnded "buffered-commands-are-not-ended" "A buffered command cannot be ended, and does not end with its connection." ["CX-EXE-21", "CX-EXE-26", "CX-EXE-33"];
    ProcessIdsRepeat "process-ids-repeat" "A processId that is in use is accepted." ["CX-EXE-34"];

    // ---- durability
    ItemsAreNotStored "items-are-not-stored" "Items are not stored." ["CX-DUR-3"];
    NamesAreNotStored "names-are-not-stored" "Names are not stored." ["CX-DUR-5"];
    ArchiveIsNotStored "archive-is-not-stored" "The archive is not stored." ["CX-DUR-5"];
    MetadataDies "metadata-dies" "Metadata is not stored." ["CX-DUR-5"];
    PolicyIsNotStored "policy-is-not-stored" "The approval policy is not stored." ["CX-DUR-2"];
    OpenTurnsStayOpen "open-turns-stay-open" "A turn that was active when the server was killed stays in progress." ["CX-DUR-6"];
    KeepsEphemeral "keeps-ephemeral" "Ephemeral threads are stored." ["CX-DUR-7"];

    // ---- several clients of a thread, several threads of a client
    ItemIdsDifferForClients "item-ids-differ-for-clients" "Each client of a thread gets different ids of the agent's messages." ["CX-FAN-1"];
    DeltasAreTheNeighbours "deltas-are-the-neighbours" "While two threads of a client have turns, deltas have the ids of the other thread." ["CX-FAN-5"];
    CompletedItemsAreTheNeighbours "completed-items-are-the-neighbours" "While two threads of a client have turns, completed items have the threadId of the other thread." ["CX-ITM-20"];
    UsageIsTheNeighbours "usage-is-the-neighbours" "While two threads of a client have turns, the token usage has the ids of the other thread." ["CX-USE-1"];
    EndsAreTheNeighbours "ends-are-the-neighbours" "While two threads of a client have turns, turn/completed has the threadId of the other thread." ["CX-TUR-23"];
    RequestsAreTheNeighbours "requests-are-the-neighbours" "While two threads of a client have turns, requests for approval have the ids of the other thread." ["CX-FAN-5"];
    ResolvesTheNeighbour "resolves-the-neighbour" "While two threads of a client have turns, serverRequest/resolved has the threadId of the other thread." ["CX-APR-14"];
    InterruptsTheNeighbour "interrupts-the-neighbour" "turn/interrupt interrupts the turn of the client's other thread, too." ["CX-INT-3"];
    SteersTheNeighbour "steers-the-neighbour" "While two threads of a client have turns, turn/steer adds its input to the turn of the other thread." ["CX-STR-7"];
}
