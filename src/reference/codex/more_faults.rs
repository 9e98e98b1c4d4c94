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
            InterruptedTurnsGoOn "interrupted-turns-go-on" "A message follows the end of an interrupted turn." ["CX-APR-17", "CX-INT-6"];
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
        }
    };
}

pub(super) use and_more;
