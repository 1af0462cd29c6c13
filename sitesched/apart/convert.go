package apart

import (
	"google.golang.org/protobuf/proto"

	"kith/cluster/wire"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// mostText bounds a text for people, in bytes.
const mostText = 4096

// checked returns an error if what the other side says breaks a bound.
func checked(m proto.Message) error {
	if breaches := wire.Check(m); len(breaches) > 0 {
		return breaches[0]
	}
	return nil
}

// taskOf and bundleOf convert the task that an attempt is; nil of a job's.
func taskOf(bundle *kithv1.AttemptName, task uint32) (*meta.TaskRun, error) {
	if bundle == nil {
		return nil, nil
	}
	id, err := wire.AttemptID(bundle)
	return &meta.TaskRun{Bundle: id, Ordinal: task}, err
}

func bundleOf(t *meta.TaskRun) (*kithv1.AttemptName, uint32) {
	if t == nil {
		return nil, 0
	}
	return wire.AttemptName(t.Bundle), t.Ordinal
}

// event converts what the runner of the machine tells; nil for what is not told.
func event(ev meta.Event) (job.AttemptID, *kithv1.WorkEvent) {
	var a job.AttemptID
	w := &kithv1.WorkEvent{}
	switch ev := ev.(type) {
	case meta.AttemptStarted:
		a, w.What = ev.Attempt, &kithv1.WorkEvent_StartedNs{StartedNs: int64(ev.At)}
	case meta.AttemptOver:
		a, w.What = ev.Attempt, &kithv1.WorkEvent_Over{Over: true}
	case meta.AttemptEnded:
		a, w.What = ev.Attempt, &kithv1.WorkEvent_Ended{Ended: wire.OutcomeMessage(&ev.Outcome)}
		w.ErrorLine = ev.Outcome.ErrorLine
	case meta.AttemptMissing:
		a, w.What = ev.Attempt, &kithv1.WorkEvent_Missing{Missing: ev.Bringing}
	case meta.StartFailed:
		a, w.What = ev.Attempt, &kithv1.WorkEvent_Failed{Failed: job.ClipText(ev.Reason, mostText)}
	case meta.FilesHere:
		a, w.What = ev.Attempt, &kithv1.WorkEvent_FilesHere{FilesHere: true}
	case meta.FilesWait:
		a, w.What = ev.Attempt, &kithv1.WorkEvent_FilesWait{FilesWait: job.ClipText(ev.Reason, mostText)}
	default:
		return a, nil
	}
	w.Attempt = wire.AttemptName(a)
	return a, w
}

// eventOf converts back; nil for what is none.
func eventOf(w *kithv1.WorkEvent) (job.AttemptID, meta.Event) {
	a, err := wire.AttemptID(w.GetAttempt())
	if err != nil {
		return a, nil
	}
	switch what := w.GetWhat().(type) {
	case *kithv1.WorkEvent_StartedNs:
		return a, meta.AttemptStarted{Attempt: a, At: job.Time(what.StartedNs)}
	case *kithv1.WorkEvent_Over:
		return a, meta.AttemptOver{Attempt: a}
	case *kithv1.WorkEvent_Ended:
		o := wire.Outcome(what.Ended)
		if o == nil {
			return a, nil
		}
		o.ErrorLine = w.GetErrorLine()
		return a, meta.AttemptEnded{Attempt: a, Outcome: *o}
	case *kithv1.WorkEvent_Missing:
		return a, meta.AttemptMissing{Attempt: a, Bringing: what.Missing}
	case *kithv1.WorkEvent_Failed:
		return a, meta.StartFailed{Attempt: a, Reason: what.Failed}
	case *kithv1.WorkEvent_FilesHere:
		return a, meta.FilesHere{Attempt: a}
	case *kithv1.WorkEvent_FilesWait:
		return a, meta.FilesWait{Attempt: a, Reason: what.FilesWait}
	}
	return a, nil
}
