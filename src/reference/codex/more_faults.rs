//! The second half of the table of deliberate defects.

/// Makes one table of the rows that are given and those here.
macro_rules! and_more {
    ($($rows:tt)*) => {
        crate::reference::faults::faults! {
            $($rows)*

            // ---- transport and JSON-RPC
            BinaryIsText "binary-is-text" "A binary frame is read as a message." ["CX-TRN-10"];
            NegativeIdsAreRefused "negative-ids-are-refused" "A request with a negative id is refused." ["CX-RPC-12", "CX-RPC-2"];
            SlowRequestsHoldUp "slow-requests-hold-up" "While command/exec runs, thread/loaded/list waits." ["CX-RPC-13"];
            RequestIdsRepeat "request-ids-repeat" "All requests of the server have the same id." ["CX-RPC-16"];
            IdsOfBothSidesMeet "ids-of-both-sides-meet" "A request with the id of a pending server request is treated as its answer." ["CX-RPC-20"];
            CapabilitiesAreNeeded "capabilities-are-needed" "initialize with capabilities null is refused." ["CX-INI-13"];
            UnknownNamesAreRefused "unknown-names-are-refused" "optOutNotificationMethods accepts only known names." ["CX-INI-1", "CX-OPT-4"];
            OptOutOfErrors "opt-out-of-errors" "A client that opts out of error gets no refusals." ["CX-OPT-6"];
            OptInIsIgnored "opt-in-is-ignored" "Experimental methods are refused even with the opt-in." ["CX-EXP-4"];
            RefusedStartsAThread "refused-starts-a-thread" "Without the opt-in, thread/start with an experimental field is refused, but starts a thread." ["CX-EXP-7"];

            // ---- threads
            StartReturnsNull "start-returns-null" "thread/start returns null." ["CX-THR-1"];
            ResumeReturnsNull "resume-returns-null" "thread/resume returns null." ["CX-RES-1"];
            ForkReturnsNull "fork-returns-null" "thread/fork returns null." ["CX-FRK-1"];
            ReadReturnsNull "read-returns-null" "thread/read returns null." ["CX-RD-1"];
            ReadHasNoStatus "read-has-no-status" "A thread that is read has no status." ["CX-RD-7"];
            ArchiveReturnsNull "archive-returns-null" "thread/archive returns null." ["CX-ARC-1"];
            UnarchiveReturnsNothing "unarchive-returns-nothing" "thread/unarchive returns an empty object." ["CX-ARC-4"];
            StartsAreNotTold "starts-are-not-told" "thread/start sends no thread/started." ["CX-INI-8", "CX-OPT-2", "CX-OPT-3", "CX-STA-6", "CX-THR-4"];
            StartedHasNoStatus "started-has-no-status" "thread/started has no status." ["CX-THR-5"];
            EmptyThreadsAreReused "empty-threads-are-reused" "thread/start returns an existing thread of the connection that has no turns." ["CX-THR-7"];
            EphemeralIsNotTold "ephemeral-is-not-told" "An ephemeral thread is reported as a stored one." ["CX-FRK-7", "CX-THR-10", "CX-THR-9"];
            NoClearStarts "no-clear-starts" "The session start source clear is refused." ["CX-THR-12"];
            SandboxesAreInKebabCase "sandboxes-are-in-kebab-case" "The sandbox workspaceWrite is refused." ["CX-THR-13"];
            PoliciesAreInKebabCase "policies-are-in-kebab-case" "The approval policy unlessTrusted is refused." ["CX-TUR-22"];
            FreshIsNotLoaded "fresh-is-not-loaded" "A thread without turns is not listed as loaded." ["CX-LDD-1", "CX-LDD-2", "CX-THR-15"];
            StartIgnoresSandbox "start-ignores-sandbox" "thread/start ignores the sandbox." ["CX-ITM-16", "CX-THR-18"];
            ResumesUnknown "resumes-unknown" "thread/resume of an unknown thread starts one." ["CX-DUR-7", "CX-RES-5"];
            UnsubscribedForGood "unsubscribed-for-good" "A connection that has unsubscribed cannot subscribe again." ["CX-RES-9"];
            ForkFollowsNothing "fork-follows-nothing" "thread/fork does not subscribe." ["CX-FRK-4", "CX-TUR-4"];
            ListsLeaveOutTheStatus "lists-leave-out-the-status" "Threads of a list have no status." ["CX-LST-13"];
            ListsLeaveOutTheTime "lists-leave-out-the-time" "Threads of a list have no updatedAt." ["CX-LST-14"];
            ReadsUnknown "reads-unknown" "An unknown thread is read as an empty one." ["CX-DUR-7", "CX-OPT-6", "CX-RD-6"];
            ShellIsAnsweredLate "shell-is-answered-late" "thread/shellCommand is answered when the command has ended." ["CX-SHL-1"];
            RestartHidesThreads "restart-hides-threads" "After a restart only loaded threads are listed." ["CX-DUR-1", "CX-DUR-5"];

            // ---- turns and items
            TurnsAreReturnedPending "turns-are-returned-pending" "turn/start returns a turn with the status pending." ["CX-TUR-1"];
            TurnIdsRepeat "turn-ids-repeat" "All turns of a thread have the same id." ["CX-TUR-7", "CX-TUR-8"];
            QueuedTurnsAreForgotten "queued-turns-are-forgotten" "turn/start during a turn is answered, but the turn never starts." ["CX-TUR-13"];
            OneThreadAtATime "one-thread-at-a-time" "turn/start is refused while another thread of the connection has a turn." ["CX-TUR-1", "CX-TUR-15"];
            RefusedSteersAdd "refused-steers-add" "A refused turn/steer adds its input." ["CX-STR-6", "CX-STR-7"];
            SteersTakeOverrides "steers-take-overrides" "Overrides of turn/steer take effect." ["CX-STR-8", "CX-TUR-4"];
            StaleInterruptsWait "stale-interrupts-wait" "turn/interrupt of a turn that has completed interrupts the next one." ["CX-INT-4"];
            InterruptedThreadsAreDead "interrupted-threads-are-dead" "A thread accepts no turn after an interrupted one." ["CX-INT-5", "CX-TUR-1"];
            InterruptedTurnsGoOn "interrupted-turns-go-on" "A message follows the end of an interrupted turn." ["CX-INT-6"];
            TextIsAscii "text-is-ascii" "Messages have question marks instead of characters beyond ASCII." ["CX-ITM-27", "CX-RD-8"];
            AnswersAreOneItem "answers-are-one-item" "All responses of the model in a turn are one message." ["CX-APR-8", "CX-FAN-4", "CX-ITM-29", "CX-ITM-3"];
            FailedThreadsAreDead "failed-threads-are-dead" "A thread accepts no turn after a failed one." ["CX-ERR-7"];
            FailuresSpread "failures-spread" "A failed turn interrupts the turn of the connection's other thread." ["CX-ERR-8"];
            StartsTellTheirStatus "starts-tell-their-status" "thread/start sends thread/status/changed." ["CX-STA-3", "CX-STA-7", "CX-THR-6"];

            // ---- approvals
            NothingIsAskedAbout "nothing-is-asked-about" "Commands need no approval." ["CX-APR-1", "CX-APR-21", "CX-APR-27", "CX-APR-3", "CX-DUR-2", "CX-OPT-7", "CX-SHL-3", "CX-STR-1", "CX-STR-6", "CX-STR-8", "CX-TUR-4"];
            AcceptedRunInTheSandbox "accepted-run-in-the-sandbox" "An accepted command runs in the sandbox." ["CX-APR-10", "CX-APR-21", "CX-APR-28", "CX-APR-6", "CX-APR-7", "CX-FS-1"];
            RunsBeforeTheAnswer "runs-before-the-answer" "A command also runs before its approval request." ["CX-APR-14", "CX-APR-15", "CX-APR-16", "CX-APR-17", "CX-APR-18", "CX-APR-19", "CX-APR-20", "CX-APR-21", "CX-APR-27", "CX-APR-28", "CX-APR-6", "CX-APR-7", "CX-APR-8", "CX-APR-9", "CX-RPC-15"];
            LateAnswersCount "late-answers-count" "A command that is accepted after its request was resolved needs no further approval." ["CX-APR-17"];
            AcceptedNeverFail "accepted-never-fail" "An accepted command always has the status completed." ["CX-APR-25", "CX-ITM-14"];
            ResolvedIsToldToOne "resolved-is-told-to-one" "serverRequest/resolved goes to only one of the clients that got the request." ["CX-APR-11", "CX-APR-27"];
            AnswersDecideAll "answers-decide-all" "An answer decides all pending requests of its connection." ["CX-APR-28"];
            PendingHoldsUp "pending-holds-up" "While an approval is pending, thread/loaded/list waits." ["CX-APR-29", "CX-RPC-1", "CX-RPC-20"];
            AcceptedChangesAreNotMade "accepted-changes-are-not-made" "An accepted change is reported as completed, but not applied." ["CX-FCH-3", "CX-FCH-7", "CX-FCH-8", "CX-FS-1"];

            // ---- files and command/exec
            ReadsAreText "reads-are-text" "fs/readFile returns the text of the file." ["CX-FS-1", "CX-FS-13", "CX-FS-15", "CX-FS-17", "CX-FS-19", "CX-FS-2", "CX-FS-27", "CX-FS-4"];
            WritesReturnNull "writes-return-null" "fs/writeFile returns null." ["CX-FS-2"];
            MetadataHasNoTimes "metadata-has-no-times" "fs/getMetadata returns no createdAtMs." ["CX-FS-7"];
            ExecIgnoresCwd "exec-ignores-cwd" "command/exec ignores cwd." ["CX-EXE-4", "CX-FS-27"];
            ExecDeltasComeLate "exec-deltas-come-late" "Output deltas come after the response." ["CX-EXE-17", "CX-EXE-19"];
            InputIsNotDecoded "input-is-not-decoded" "command/exec/write writes deltaBase64 undecoded." ["CX-EXE-19", "CX-EXE-21", "CX-EXE-24", "CX-EXE-29"];
            ExecDeltasGoToAll "exec-deltas-go-to-all" "Output deltas go to all connections." ["CX-EXE-25"];

            // ---- several clients
            LeavingEndsTheTurn "leaving-ends-the-turn" "A turn ends when one of its thread's subscribers disconnects." ["CX-FAN-3", "CX-UNS-5"];
            JoinersWait "joiners-wait" "A client that resumes a thread during a turn gets no message of that turn." ["CX-FAN-4"];

            // ---- more about JSON-RPC and the handshake
            SecondInitializedIsRefused "second-initialized-is-refused" "A second initialized is answered with an error." ["CX-INI-10", "CX-RPC-7"];
            UnknownNotificationsAreRefused "unknown-notifications-are-refused" "An unknown notification is answered with an error." ["CX-RPC-7"];
            BrokenJsonIsInvalid "broken-json-is-invalid" "Text that is not JSON is reported as an invalid request." ["CX-RPC-10"];
            UnreadableHasNoMessage "unreadable-has-no-message" "The error for text that is not JSON has no message." ["CX-RPC-4"];
            EndsHaveTheIdNull "ends-have-the-id-null" "turn/completed has the id null." ["CX-RPC-5"];
            NumericIdsBecomeNumbers "numeric-ids-become-numbers" "The id of a response is a number where the request has a string of digits." ["CX-RPC-2"];
            UnknownMethodsUnsubscribe "unknown-methods-unsubscribe" "A request of an unknown method ends the subscriptions of its connection." ["CX-APR-6", "CX-RPC-14", "CX-STA-3", "CX-TUR-4"];
            RequestIdsAreOfTheThread "request-ids-are-of-the-thread" "The id of a request is the number of its turn, so that two threads may use the same." ["CX-RPC-16"];
            UnknownThreadsAreTheNewest "unknown-threads-are-the-newest" "An unknown threadId means the newest thread of the connection." ["CX-ARC-7", "CX-FRK-8", "CX-NAM-7", "CX-OPT-6", "CX-RD-6", "CX-RES-5", "CX-SHL-5", "CX-STR-9", "CX-TUR-10"];
            ThreadIdsMayGoOn "thread-ids-may-go-on" "A threadId that goes on behind that of a thread means this thread." ["CX-ARC-7", "CX-FRK-8", "CX-NAM-7", "CX-RD-6", "CX-RES-5", "CX-SHL-5", "CX-STR-9", "CX-TUR-10"];
            RefusedOverridesStay "refused-overrides-stay" "A request with an experimental variant is refused, but its overrides become the thread's defaults." ["CX-EXP-7"];
            ExperimentalFieldsAreNotNamed "experimental-fields-are-not-named" "The refusal of an experimental field names only the method." ["CX-EXP-2"];
            VariantsAreNamedAsFields "variants-are-named-as-fields" "The refusal of an experimental variant names the field instead." ["CX-EXP-3"];
            OptInIsItsPresence "opt-in-is-its-presence" "experimentalApi false opts in." ["CX-EXP-5"];
            OptInsSpread "opt-ins-spread" "The opt-in of one client of a thread holds for all of them." ["CX-EXP-6"];
            OptInIsForMethods "opt-in-is-for-methods" "Experimental fields are refused even with the opt-in." ["CX-EXP-4"];
            OptOutOfTurnsIsForTheThread "opt-out-of-turns-is-for-the-thread" "A turn event that one client of a thread has opted out of is sent to none of its clients." ["CX-OPT-5"];

            // ---- more about threads and lists
            BusyStartsAreNotTold "busy-starts-are-not-told" "While a turn of the connection runs, thread/start sends no thread/started." ["CX-THR-4"];
            PreviewsLeak "previews-leak" "A new thread has the preview of the connection's last one." ["CX-THR-3"];
            NoneIsNoPersonality "none-is-no-personality" "The personality none is refused." ["CX-THR-11"];
            InterruptsResetTheFolder "interrupts-reset-the-folder" "After an interrupted turn the thread has the default cwd." ["CX-APR-4", "CX-APR-6", "CX-FCH-3", "CX-THR-16"];
            InterruptsResetThePolicy "interrupts-reset-the-policy" "After an interrupted turn the thread has the default approval policy." ["CX-THR-17"];
            FailuresResetTheSandbox "failures-reset-the-sandbox" "After a failed turn the thread has the default sandbox." ["CX-THR-18"];
            LaterCommandsLoseTheFolder "later-commands-lose-the-folder" "All commands of a turn but the first run in the default cwd." ["CX-APR-21", "CX-APR-28", "CX-THR-16", "CX-TUR-18"];
            LeaversFollowNothing "leavers-follow-nothing" "Once a connection has unsubscribed from a thread, thread/start does not subscribe it." ["CX-THR-8", "CX-TUR-3"];
            ResumesToggle "resumes-toggle" "thread/resume by a connection that is subscribed unsubscribes it." ["CX-RES-4", "CX-UNS-1"];
            DesertedThreadsAreLocked "deserted-threads-are-locked" "A thread that has a turn and no more subscribers cannot be resumed." ["CX-FAN-6"];
            ForksAreToldAsBusy "forks-are-told-as-busy" "The thread/started of a fork of a busy thread says that it is active." ["CX-FRK-3"];
            ForksNameTheFirst "forks-name-the-first" "The fork of a fork names the thread where all began." ["CX-FRK-2"];
            BusyForksAreNotFollowed "busy-forks-are-not-followed" "A fork of a thread with a turn does not subscribe." ["CX-FRK-4"];
            ForksFollowTheSource "forks-follow-the-source" "thread/fork subscribes to the source, too." ["CX-TUR-20"];
            ForksWriteToTheirSource "forks-write-to-their-source" "A turn of a fork is added to its source, too." ["CX-FRK-6"];
            NoPagesOfOne "no-pages-of-one" "A limit of 1 is ignored." ["CX-LST-3"];
            FullPagesHaveACursor "full-pages-have-a-cursor" "The last page has a cursor if it is full." ["CX-LST-5"];
            ByUpdateUnlessAsked "by-update-unless-asked" "Without a sort key, threads are listed by updatedAt." ["CX-LST-6"];
            OldestUpdateFirst "oldest-update-first" "With sortKey updated_at, the thread that was updated last is listed last." ["CX-LST-7"];
            NullListsAll "null-lists-all" "archived null lists archived threads with the others." ["CX-LST-8"];
            FoldersIgnoreCase "folders-ignore-case" "cwd ignores letter case." ["CX-LST-9"];
            SearchIsForTheBeginning "search-is-for-the-beginning" "The search finds only titles that begin with the term." ["CX-LST-10"];
            NoProvidersListNone "no-providers-list-none" "An empty list of modelProviders lists nothing." ["CX-LST-11"];
            NoKindsListNone "no-kinds-list-none" "An empty list of sourceKinds lists nothing." ["CX-LST-12"];
            CamelSortKeys "camel-sort-keys" "The sort keys createdAt and updatedAt are accepted." ["CX-LST-17"];
            ListsSayIdle "lists-say-idle" "An active thread is listed as idle." ["CX-LST-18"];
            StoredIsIdle "stored-is-idle" "A thread that is not loaded is listed and read as idle." ["CX-DUR-4", "CX-LST-13", "CX-RD-7"];
            EmptyListsAreNull "empty-lists-are-null" "The data of a list without threads are null." ["CX-LST-1"];
            TheArchiveHasNoPreviews "the-archive-has-no-previews" "Threads in a list of the archive have no preview." ["CX-LST-14"];
            EphemeralForksAreListed "ephemeral-forks-are-listed" "Ephemeral forks are listed." ["CX-LST-15"];
            InterruptedIsNotListed "interrupted-is-not-listed" "A thread whose turns were all interrupted is not listed." ["CX-LST-2"];
            BusyReadsHaveTurns "busy-reads-have-turns" "During a turn, thread/read returns the turns without includeTurns." ["CX-RD-2"];
            ReadsLoad "reads-load" "thread/read loads the thread." ["CX-RD-4"];
            ReadingTurnsSubscribes "reading-turns-subscribes" "thread/read with includeTurns subscribes." ["CX-RD-5", "CX-TUR-20"];
            OpenTurnsAreReadFirst "open-turns-are-read-first" "The turn in progress is read as the first one." ["CX-RD-9"];
            InterruptedIsReadAsFailed "interrupted-is-read-as-failed" "An interrupted turn is read as failed." ["CX-FRK-9", "CX-INT-9"];
            UpdatesHaveTheOldName "updates-have-the-old-name" "The thread/name/updated of a second name has the first one." ["CX-NAM-2"];
            StoredNamesAreToldToTheAsker "stored-names-are-told-to-the-asker" "The name of a thread that is not loaded is reported only to who has set it." ["CX-NAM-3"];
            ArchiveIsToldToSubscribers "archive-is-told-to-subscribers" "thread/archived and thread/unarchived are sent only to subscribers." ["CX-ARC-2", "CX-ARC-5"];
            UnarchiveLeavesTheFile "unarchive-leaves-the-file" "Unarchiving leaves the file where it is." ["CX-ARC-9"];
            MetadataSetsOne "metadata-sets-one" "Of several fields of gitInfo, only the first is set." ["CX-MET-1"];
            LaterCompactionsHaveNoItem "later-compactions-have-no-item" "Only the first compaction of a thread has an item." ["CX-CMP-2"];
            ShellInATurnIsAnsweredLate "shell-in-a-turn-is-answered-late" "During a turn, thread/shellCommand is answered when the command has ended." ["CX-SHL-1"];
            RollsBackOne "rolls-back-one" "A rollback of several turns drops only the last." ["CX-RBK-1"];
            BusyUnsubscribeDoesNothing "busy-unsubscribe-does-nothing" "During a turn, thread/unsubscribe changes nothing." ["CX-UNS-4"];
            RestartForgetsOpenThreads "restart-forgets-open-threads" "A thread with a turn in progress is lost at a restart." ["CX-DUR-1"];

            // ---- more about turns and items
            QueuedStartsAreAnsweredLate "queued-starts-are-answered-late" "turn/start during a turn is answered when its own turn has ended." ["CX-TUR-2"];
            StartsBehindFailuresAreAnsweredLate "starts-behind-failures-are-answered-late" "turn/start after a failed or interrupted turn is answered when its turn has ended." ["CX-TUR-1", "CX-TUR-2"];
            WritableRootsAreIgnored "writable-roots-are-ignored" "The writableRoots of a turn's sandbox policy are ignored." ["CX-TUR-25"];
            InterruptReturnsNull "interrupt-returns-null" "turn/interrupt returns null." ["CX-INT-1"];
            NullInterrupts "null-interrupts" "turn/interrupt with the turnId null interrupts the active turn." ["CX-INT-8"];
            TotalsBeginAnew "totals-begin-anew" "After a turn that was not completed, the total begins anew." ["CX-USE-3"];
            LaterUsageHasNoLast "later-usage-has-no-last" "Only the first token usage of a thread has last." ["CX-USE-2"];
            LaterFailuresAreSilent "later-failures-are-silent" "Only the first error of a thread is reported by error." ["CX-ERR-1"];
            HalfAnswersComplete "half-answers-complete" "A turn that fails behind a message ends with the status completed." ["CX-ERR-2"];
            HttpStatusIsText "http-status-is-text" "httpStatusCode is a string." ["CX-ERR-6"];
            TwoFailuresAreTheEnd "two-failures-are-the-end" "A thread accepts no turn after two failed ones." ["CX-ERR-7"];
            ErrorsStay "errors-stay" "A completed turn has the error of the failed one before it." ["CX-ERR-11"];
            AstralTextIsLost "astral-text-is-lost" "Characters beyond the basic plane are left out of messages." ["CX-ITM-27"];
            LongOutputIsCut "long-output-is-cut" "The aggregatedOutput has at most 100 characters." ["CX-ITM-15", "CX-ITM-26"];
            DeltasGoToTheFirst "deltas-go-to-the-first" "Only the first of several subscribers gets the deltas of messages." ["CX-FAN-1", "CX-ITM-5", "CX-OPT-2", "CX-OPT-5"];
            LaterTurnsAreTheirStarters "later-turns-are-their-starters" "From the third turn of a thread on, turns are sent only to who has started them." ["CX-FAN-2"];
            TheFirstLeavesForAll "the-first-leaves-for-all" "When the first subscriber disconnects, the others get nothing any more." ["CX-FAN-3"];

            // ---- more about approvals
            DenialsMakeWary "denials-make-wary" "In a thread where a command was declined, commands that need no approval are asked about." ["CX-APR-24"];
            NewTurnsEndWaitingOnes "new-turns-end-waiting-ones" "turn/start interrupts the active turn if it waits for an approval." ["CX-APR-30"];
            LeavingDeclines "leaving-declines" "When one of several clients that were asked disconnects, the command is declined." ["CX-APR-30"];
            LongCommandsRun "long-commands-run" "Commands of more than 200 bytes need no approval." ["CX-APR-1"];
            RequestsAreCut "requests-are-cut" "A request shows at most 100 characters of its command." ["CX-APR-4"];
            SessionGrantsResolveLate "session-grants-resolve-late" "After acceptForSession, serverRequest/resolved comes after the item." ["CX-APR-12", "CX-FCH-6"];
            LeaversAreAsked "leavers-are-asked" "Connections that have unsubscribed from a thread get its approval requests." ["CX-APR-26"];
            LateAnswersResolve "late-answers-resolve" "A second answer to a request sends serverRequest/resolved again." ["CX-APR-13", "CX-RPC-15"];
            RequestsHaveTheFirstTurn "requests-have-the-first-turn" "Requests have the turnId of the thread's first turn." ["CX-APR-1", "CX-APR-2", "CX-APR-3"];
            OneOfSeveralChangesIsMade "one-of-several-changes-is-made" "Of several accepted changes, only the first is made." ["CX-FCH-3"];

            // ---- more about files and command/exec
            ShortWritesLeaveATail "short-writes-leave-a-tail" "Writing less than is there leaves the rest." ["CX-FS-3"];
            FoldersHaveNoTimes "folders-have-no-times" "Directories have no modifiedAtMs." ["CX-FS-7"];
            EmptyFilesAreNone "empty-files-are-none" "An empty file is not reported as a file." ["CX-FS-8"];
            HiddenFilesAreNotListed "hidden-files-are-not-listed" "Files whose names begin with a dot are not listed." ["CX-FS-10"];
            FolderNamesEndInASlash "folder-names-end-in-a-slash" "The fileName of a directory ends in a slash." ["CX-FS-11"];
            FileNamesAreAscii "file-names-are-ascii" "A fileName has question marks instead of characters beyond ASCII." ["CX-FS-11"];
            RemovedTreesLeaveTheirRoot "removed-trees-leave-their-root" "Removing a tree leaves its empty directory." ["CX-FS-12"];
            EmptyFoldersAreNotCopied "empty-folders-are-not-copied" "A copy of a tree has no empty directories." ["CX-FS-17"];
            CopiesMayGoToRelativePaths "copies-may-go-to-relative-paths" "The destination of fs/copy may be relative." ["CX-FS-18"];
            WatchReturnsTheLink "watch-returns-the-link" "fs/watch returns a link as it is." ["CX-FS-21"];
            ExitCodesAreSigned "exit-codes-are-signed" "Exit codes beyond 127 are negative." ["CX-EXE-2"];
            InheritedVariablesStay "inherited-variables-stay" "A variable of the server's that env sets to null stays." ["CX-EXE-6"];
            NamedProcessesHaveNoTimeout "named-processes-have-no-timeout" "A command with a processId is not ended by timeoutMs." ["CX-EXE-7"];
            InputNeedsNoProcess "input-needs-no-process" "streamStdin alone needs no processId." ["CX-EXE-13"];
            StreamedBytesAreText "streamed-bytes-are-text" "Streamed output that is not UTF-8 is changed." ["CX-EXE-15"];
            StreamedErrorsAreRepeated "streamed-errors-are-repeated" "Streamed stderr is repeated in the response." ["CX-EXE-16"];
            ErrorDeltasComeLate "error-deltas-come-late" "Output deltas of stderr come after the response." ["CX-EXE-17"];
            DeltasNameAnotherProcess "deltas-name-another-process" "While the connection has two processes, output deltas have the processId of the other." ["CX-EXE-18"];
            EndedProcessesCanBeEnded "ended-processes-can-be-ended" "terminate succeeds for a processId that is not running." ["CX-EXE-22", "CX-EXE-24"];
            NamelessProcessesOutlive "nameless-processes-outlive" "A process without a processId outlives its connection." ["CX-EXE-26"];
            WaitingCommandsAreAnswered "waiting-commands-are-answered" "A command that waits for its input is answered after 100 ms." ["CX-EXE-32"];
        }
    };
}

pub(super) use and_more;
