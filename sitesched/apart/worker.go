package apart

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"kith/internal/clock"
	"kith/internal/job"
	"kith/internal/pause"
	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/runner"
	"kith/sitesched/work"
)

// WorkerConfig is what a [Worker] is made of.
type WorkerConfig struct {
	Site job.SiteID
	// Machine is the name of this one, Cluster the id of the site's members.
	Machine string
	Cluster [16]byte
	Version string
	// Folder is where it keeps files of attempts and which lead it has followed.
	Folder     string
	Processors int32
	// Lost is the longest lease of what runs while the machine is driven, whatever the leader says; 0 for no bound.
	Lost time.Duration
	// QuotaBytes, KeepFreeBytes and MaxFileBytes bound files, see [runner.FilesConfig].
	QuotaBytes, KeepFreeBytes, MaxFileBytes int64
	System                                  func(report func(work.Event)) (work.System, error)
	Grace, Staging                          time.Duration
	Fetch                                   transfer.FetchConfig
	Log                                     *slog.Logger

	// For tests: what says that the disk is low, given that it was; nil for the disk of Folder.
	low func(was bool) error
}

// roomEvery is how often it is looked whether the disk is low.
const roomEvery = 2 * time.Second

// Worker runs the attempts of a site at the machine that has its processors. It is safe for use by
// several goroutines.
type Worker struct {
	kithv1.UnimplementedWorkServiceServer
	cfg    WorkerConfig
	files  *runner.Files
	runs   *runner.Runner
	cancel context.CancelFunc
	ctx    context.Context
	wg     sync.WaitGroup

	turn  sync.Mutex // of sessions, one after another
	fence *fence

	mu       sync.Mutex
	session  *drive
	attempts map[job.AttemptID]*attempt
	// left are those that had folders when the process began, and of which nobody has asked yet.
	left   map[job.AttemptID]bool
	strays int
	low    string // why the disk has no room for jobs of other sites; empty if it has
}

// attempt is what the worker knows of one until it is cleared.
type attempt struct {
	whileDriven bool
	// stray says that it is to go as soon as it has ended.
	stray bool
	// What was told of it, in that order; end is the last.
	started, over, end meta.Event
}

// OpenWorker starts a worker. Attempts of an earlier process run on until a leader asks for them.
func OpenWorker(cfg WorkerConfig) (*Worker, error) {
	if err := os.MkdirAll(cfg.Folder, 0o700); err != nil {
		return nil, err
	}
	w := &Worker{cfg: cfg, attempts: make(map[job.AttemptID]*attempt), left: make(map[job.AttemptID]bool)}
	var err error
	if w.fence, err = openFence(cfg.Folder, cfg.Cluster); err != nil {
		return nil, err
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.files, err = runner.OpenFiles(runner.FilesConfig{
		Site: cfg.Site, Dir: cfg.Folder, QuotaBytes: cfg.QuotaBytes, KeepFreeBytes: cfg.KeepFreeBytes, MaxFileBytes: cfg.MaxFileBytes,
		Copies: supplies{w}, Backend: supplies{w}, Apart: true, Log: cfg.Log,
	})
	if err != nil {
		return nil, errors.Join(err, w.fence.close())
	}
	w.runs, err = runner.New(runner.Config{
		Files: w.files, System: cfg.System, Peers: supplies{w}, Away: w.away, Tell: w.tell, Post: w.tell,
		SinceBoot: func(t job.Time) time.Duration { return time.Duration(t) }, // leases come by this machine's clock
		Grace:     cfg.Grace, Staging: cfg.Staging, Fetch: cfg.Fetch, Log: cfg.Log,
	})
	if err != nil {
		return nil, errors.Join(err, w.files.Close(), w.fence.close())
	}
	list, err := w.runs.Attempts()
	if err != nil {
		w.Close() //nolint:errcheck // likewise
		return nil, err
	}
	for _, a := range list {
		w.left[a] = true
	}
	w.wg.Go(func() { w.files.KeepSweeping(w.ctx) })
	w.wg.Go(w.keepRoom)
	return w, nil
}

// keepRoom makes room while the disk has less than is to stay free: what has ended holds some that nobody wants.
// What is missing then the next beat says.
func (w *Worker) keepRoom() {
	low := w.cfg.low
	if low == nil {
		disk := runner.NewRoom(w.cfg.Folder)
		low = func(was bool) error { return disk.Low(was, w.cfg.KeepFreeBytes) }
	}
	for was := false; ; {
		err := low(was)
		if was = err != nil; was {
			w.runs.MakeRoom()
		}
		w.noteLow(err)
		if !pause.For(w.ctx, roomEvery) {
			return
		}
	}
}

func (w *Worker) noteLow(err error) {
	text := ""
	if err != nil {
		text = job.ClipText(err.Error(), mostText)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.low = text
}

// Capabilities says what can be done to jobs here.
func (w *Worker) Capabilities() []work.Capability { return w.runs.Capabilities() }

// Close ends the worker; what runs runs on.
func (w *Worker) Close() error {
	w.cancel()
	w.turn.Lock() // a lead may be about to begin a session
	defer w.turn.Unlock()
	if s := w.driven(); s != nil {
		s.cancel()
		<-s.done
	}
	w.runs.Close()
	w.wg.Wait()
	return errors.Join(w.files.Close(), w.fence.close())
}

// tell takes what the runner says, keeps it and passes it on. It never waits.
func (w *Worker) tell(ev meta.Event) {
	a, message := event(ev)
	if message == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.attempts[a]
	if e != nil && e.stray {
		switch ev.(type) {
		case meta.AttemptEnded, meta.AttemptMissing, meta.StartFailed:
			delete(w.attempts, a)
			w.strays--
			w.wg.Go(func() { w.runs.Clear(a) })
		}
		return
	}
	switch ev := ev.(type) {
	case meta.AttemptStarted:
		if e != nil {
			e.started = ev
		}
	case meta.AttemptOver:
		if e != nil {
			e.over = ev
		}
	case meta.AttemptEnded, meta.StartFailed:
		if e != nil {
			e.end = ev
		}
	case meta.AttemptMissing:
		delete(w.attempts, a)
	}
	w.say(&kithv1.DriveResponse{Report: &kithv1.DriveResponse_Event{Event: message}})
}

// say says something to who drives. The caller holds the mutex.
func (w *Worker) say(r *kithv1.DriveResponse) {
	if w.session != nil {
		w.session.out.put(r)
	}
}

// again tells again what is known of an attempt. The caller holds the mutex.
func (w *Worker) again(e *attempt) {
	for _, ev := range []meta.Event{e.started, e.over, e.end} {
		if ev != nil {
			_, message := event(ev)
			w.say(&kithv1.DriveResponse{Report: &kithv1.DriveResponse_Event{Event: message}})
		}
	}
}

// take notes an attempt; false if it is known, of which all is told again.
func (w *Worker) take(a job.AttemptID, whileDriven bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.left, a)
	if e := w.attempts[a]; e != nil && !e.stray {
		e.whileDriven = whileDriven
		w.again(e)
		return false
	}
	if e := w.attempts[a]; e != nil { // it is being cleared, and is asked for again: it is not
		e.stray = false
		w.strays--
		return false
	}
	w.attempts[a] = &attempt{whileDriven: whileDriven}
	return true
}

// clear forgets an attempt, and stops it first if it may run.
func (w *Worker) clear(a job.AttemptID) {
	w.mu.Lock()
	e, left := w.attempts[a], w.left[a]
	delete(w.left, a)
	live := left || e != nil && e.end == nil
	switch {
	case e != nil && e.stray:
		w.mu.Unlock()
		return
	case !live:
		delete(w.attempts, a)
	case e == nil:
		w.attempts[a] = &attempt{stray: true}
		w.strays++
	default:
		e.stray = true
		w.strays++
	}
	w.mu.Unlock()
	if !live {
		w.runs.Clear(a)
		return
	}
	if e != nil {
		w.cfg.Log.Warn("an attempt that the site has given up is stopped", "attempt_id", a.String())
	}
	// What was not started is not: the word to stop is there before the one to look.
	w.runs.Kill(meta.Kill{Attempt: a, Lease: true, Stale: true})
	if left {
		w.runs.Adopt(meta.Adopt{Attempt: a, BootID: w.runs.BootID(), Leased: true})
	}
}

// atMost bounds a lease of what runs while the machine is driven. Leaders may have other bounds, while they are
// being given another one; what one of them gives up must have ended by the bound of this machine.
func (w *Worker) atMost(until job.Time) job.Time {
	if w.cfg.Lost == 0 {
		return until
	}
	return min(until, job.Time(clock.SinceBoot()+w.cfg.Lost))
}

// extend lets all attempts run on that run while the machine is driven.
func (w *Worker) extend(until job.Time) {
	until = w.atMost(until)
	w.mu.Lock()
	var list []job.AttemptID
	for a, e := range w.attempts {
		if e.whileDriven && e.end == nil {
			list = append(list, a)
		}
	}
	w.mu.Unlock()
	for _, a := range list {
		w.runs.Extend(meta.Extend{Attempt: a, Until: until})
	}
}

// has returns all attempts that are here.
func (w *Worker) has() []job.AttemptID {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]job.AttemptID, 0, len(w.attempts)+len(w.left))
	for a := range w.attempts {
		list = append(list, a)
	}
	for a := range w.left {
		list = append(list, a)
	}
	return list
}

func (w *Worker) driven() *drive {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

// away reports whether other sites cannot be reached, as nobody drives.
func (w *Worker) away(job.SiteID) bool { return w.driven() == nil }
