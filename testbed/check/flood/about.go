package flood

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// OriginsOnly names messages of [About] that only the origin of the job may say.
var OriginsOnly = []string{"place-copy", "verdict", "renewed", "withdraw", "result-ack", "stop", "task-verdict", "task-results-ack", "recall", "stop-tasks"}

// About returns a message about an attempt of each kind, by its word, see [meta.Message].
func About(a *kithv1.AttemptName) map[string]*kithv1.PeerMessage {
	now := time.Now().UnixNano()
	evil, err := proto.Marshal(&kithv1.Payload{Job: &kithv1.Job{Command: []string{"/bin/false"}, Processors: 2, Walltime: durationpb.New(time.Minute)}})
	if err != nil {
		panic(err) // a message of ours
	}
	request := &kithv1.CopyRequest{Processors: 1, WalltimeNs: int64(time.Minute)}
	tasks := job.TaskRange(0, 1)
	failed := &kithv1.AttemptOutcome{Kind: 2, ExitCode: 1, StartTimeNs: now, EndTimeNs: now}
	return map[string]*kithv1.PeerMessage{
		"place-copy":   {Message: &kithv1.PeerMessage_PlaceCopy{PlaceCopy: &kithv1.PlaceCopy{Attempt: a, Request: request}}},
		"copy-answer":  {Message: &kithv1.PeerMessage_CopyAnswer{CopyAnswer: &kithv1.CopyAnswer{Attempt: a, Reason: uint32(job.Full)}}},
		"claim":        {Message: &kithv1.PeerMessage_Claim{Claim: &kithv1.Claim{Attempt: a, Stamp: 1}}},
		"verdict":      {Message: &kithv1.PeerMessage_Verdict{Verdict: &kithv1.Verdict{Attempt: a, Granted: true, Payload: evil}}},
		"renew":        {Message: &kithv1.PeerMessage_Renew{Renew: &kithv1.Renew{Attempt: a}}},
		"renewed":      {Message: &kithv1.PeerMessage_Renewed{Renewed: &kithv1.Renewed{Attempt: a}}},
		"withdraw":     {Message: &kithv1.PeerMessage_Withdraw{Withdraw: &kithv1.Withdraw{Attempt: a}}},
		"withdraw-ack": {Message: &kithv1.PeerMessage_WithdrawAck{WithdrawAck: &kithv1.WithdrawAck{Attempt: a}}},
		"started":      {Message: &kithv1.PeerMessage_Started{Started: &kithv1.Started{Attempt: a, StartTimeNs: now}}},
		"result":       {Message: &kithv1.PeerMessage_Result{Result: &kithv1.Result{Attempt: a, Outcome: failed}}},
		"result-ack":   {Message: &kithv1.PeerMessage_ResultAck{ResultAck: &kithv1.ResultAck{Attempt: a, Accepted: true}}},
		"stop":         {Message: &kithv1.PeerMessage_Stop{Stop: &kithv1.Stop{Attempt: a}}},
		"give-back":    {Message: &kithv1.PeerMessage_GiveBack{GiveBack: &kithv1.GiveBack{Attempt: a, Stamp: 1 << 60}}},
		"task-verdict": {Message: &kithv1.PeerMessage_TaskVerdict{TaskVerdict: &kithv1.TaskVerdict{Bundles: []*kithv1.GivenBundle{{
			Bundle: a, Request: request, Tasks: tasks.AppendBinary(nil),
		}}}}},
		"task-results":     {Message: &kithv1.PeerMessage_TaskResults{TaskResults: &kithv1.TaskResults{Bundle: a, Batch: 1, Results: []*kithv1.TaskResult{{Kind: 2, ExitCode: 1}}}}},
		"task-results-ack": {Message: &kithv1.PeerMessage_TaskResultsAck{TaskResultsAck: &kithv1.TaskResultsAck{Bundle: a, Unknown: true}}},
		"recall":           {Message: &kithv1.PeerMessage_Recall{Recall: &kithv1.Recall{Bundle: a, Most: 1}}},
		"stop-tasks":       {Message: &kithv1.PeerMessage_StopTasks{StopTasks: &kithv1.StopTasks{Bundle: a}}},
		"copy-digest": {Message: &kithv1.PeerMessage_CopyDigest{CopyDigest: &kithv1.CopyDigest{
			Stamp: 1 << 60, Entries: []*kithv1.DigestEntry{{Attempt: a, Phase: kithv1.CopyPhase_COPY_PHASE_ENDED}},
		}}},
	}
}
