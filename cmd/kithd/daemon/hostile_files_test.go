package daemon

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	"kith/meta"
	"kith/store"

	kithv1 "kith/proto/gen/kith/v1"
)

// idle says that an insider has free processors, so that jobs are placed there.
func (r *rogue) idle(site string) {
	r.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_LoadDigest{LoadDigest: &kithv1.LoadDigest{
		SiteId: site, Incarnation: 1, Sequence: 1, Processors: 8, FreeProcessors: 8, Speed: 1, TimeNs: time.Now().UnixNano(),
	}}})
	r.settled()
}

// taken has an insider take a copy of a job of alpha and claim it. It returns the grant.
func (r *rogue) taken(at *kithv1.AttemptName) *kithv1.Payload {
	r.t.Helper()
	r.hear(func(m *kithv1.PeerMessage) bool { return proto.Equal(m.GetPlaceCopy().GetAttempt(), at) })
	r.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_CopyAnswer{CopyAnswer: &kithv1.CopyAnswer{Attempt: at, Accepted: true}}})
	v := r.claim(at)
	var p kithv1.Payload
	if err := proto.Unmarshal(v.GetPayload(), &p); !v.GetGranted() || err != nil {
		r.t.Fatalf("the claim: %v, %v", v, err)
	}
	return &p
}

// asks for a chunk and returns what comes.
func (r *rogue) asks(at *kithv1.AttemptName, chunk []byte) *kithv1.FileReply {
	r.t.Helper()
	number := uint64(time.Now().UnixNano()) //nolint:gosec // after 1970
	r.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_FileRequest{FileRequest: &kithv1.FileRequest{
		Request: number, Attempt: at, Limit: 1000, Target: &kithv1.FileRequest_Chunk{Chunk: chunk},
	}}})
	return r.hear(func(m *kithv1.PeerMessage) bool { return m.GetFileReply().GetRequest() == number }).GetFileReply()
}

// reads asks for what a job that runs has written, and returns what comes.
func (r *rogue) reads(at *kithv1.AttemptName, output string) *kithv1.FileReply {
	r.t.Helper()
	number := uint64(time.Now().UnixNano()) //nolint:gosec // after 1970
	r.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_FileRequest{FileRequest: &kithv1.FileRequest{
		Request: number, Attempt: at, Limit: 1000, Target: &kithv1.FileRequest_Output{Output: output},
	}}})
	return r.hear(func(m *kithv1.PeerMessage) bool { return m.GetFileReply().GetRequest() == number }).GetFileReply()
}

// withInput is a job with an input that travels in a chunk.
func withInput(content byte) *kithv1.Job {
	j := shell("true")
	j.Processors, j.Copies = 2, 2
	j.Inputs = []*kithv1.InputFile{{Path: "in", Content: &kithv1.InputFile_Data{Data: bytes.Repeat([]byte{content}, 100_000)}}}
	return j
}

// busy keeps all processors of alpha until open is called, and returns the job.
func (a *attacked) busy() (id string, open func()) {
	a.t.Helper()
	wait, open := barrier(a.t)
	j := shell(wait)
	j.Processors = 2
	id = a.submit(j)
	a.waitState(id, kithv1.JobStatus_STATE_RUNNING)
	return id, open
}

// Who holds a claim reads the inputs of that job and nothing else, until it has lost the
// claim and not a moment longer; who does not hold it reads nothing.
func TestHostileFileRequests(t *testing.T) {
	t.Parallel()
	a := attack(t, nil)
	_, open := a.busy()
	defer open()
	beta, gamma := a.joined(a.beta), a.joined(a.gamma)
	beta.idle("beta")
	id, other := a.submit(withInput('a')), a.submit(withInput('b'))
	at, otherAt := attemptOf(t, id, 1), attemptOf(t, other, 1)
	chunk := beta.taken(at).GetInputs().GetFiles()[0].GetChunks()[0]
	foreign := sha256.Sum256(bytes.Repeat([]byte{'b'}, 100_000))
	if r := beta.asks(at, chunk); len(r.GetData()) != 1000 {
		t.Fatalf("who holds the claim gets %v", r)
	}
	denied := uint64(0)
	deny := func(what string, r *kithv1.FileReply) {
		t.Helper()
		denied++
		if r.GetError() != kithv1.FileReply_ERROR_DENIED || len(r.GetData()) > 0 {
			t.Errorf("%s: %.200v", what, r)
		}
	}
	a.begin()
	for range 20 {
		deny("a chunk of another job", beta.asks(at, foreign[:]))
		deny("a job that it does not hold", beta.asks(otherAt, foreign[:]))
		deny("who has no claim", gamma.asks(at, chunk))
	}
	beta.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_GiveBack{GiveBack: &kithv1.GiveBack{Attempt: at, Stamp: 1 << 60}}})
	beta.settled()
	a.eventually("the claim is free again", func() bool { return a.get(id).GetStatus().GetHostSiteId() != "beta" })
	deny("after the claim was lost", beta.asks(at, chunk))
	chunk = beta.taken(otherAt).GetInputs().GetFiles()[0].GetChunks()[0]
	if r := beta.asks(otherAt, chunk); len(r.GetData()) != 1000 {
		t.Fatalf("who holds the claim gets %v", r)
	}
	now := time.Now().UnixNano()
	beta.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_Result{Result: &kithv1.Result{
		Attempt: otherAt, Outcome: &kithv1.AttemptOutcome{Kind: 1, StartTimeNs: now, EndTimeNs: now},
	}}})
	a.waitState(other, completed)
	deny("after the end", beta.asks(otherAt, chunk))
	a.quiet("file requests")
	a.tells("refused-file", "no-right", "beta")
	a.tells("refused-file", "no-right", "gamma")
	if n := a.refused("refused-file", "no-right"); n != denied {
		t.Errorf("the audit log tells of %d refusals, want %d", n, denied)
	}
}

// A site that is revoked loses at once what is open: its stream and its lane end, a new
// stream on the connection that is still up is refused, its copy leaves the queue and its
// attempt is stopped. Admitted anew it cannot read what it could before.
func TestHostileRevokedWhileOpen(t *testing.T) {
	t.Parallel()
	a := attack(t, func(c *config.Config) { c.Scheduler.Processors = 2 })
	conn := a.peers(a.beta)
	beta := a.stream(conn)
	beta.say(helloOf("beta"))
	beta.hear(func(m *kithv1.PeerMessage) bool { return m.GetHello() != nil })
	place := func(n int) *kithv1.AttemptName {
		at := attemptOf(t, fmt.Sprint("beta.1.", n), 1)
		beta.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_PlaceCopy{PlaceCopy: &kithv1.PlaceCopy{
			Attempt: at, Request: &kithv1.CopyRequest{Processors: 2, WalltimeNs: int64(time.Hour)},
		}}})
		return at
	}
	first := place(1)
	beta.hear(func(m *kithv1.PeerMessage) bool { return m.GetClaim() != nil })
	work, err := proto.Marshal(&kithv1.Payload{Job: &kithv1.Job{Command: []string{"/bin/sleep", "300"}, Processors: 2, Walltime: durationpb.New(time.Hour)}})
	if err != nil {
		t.Fatal(err)
	}
	beta.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_Verdict{Verdict: &kithv1.Verdict{Attempt: first, Granted: true, Payload: work}}})
	own := func() *kithv1.Site {
		r, err := a.sites.GetSite(a.ctx(), &kithv1.GetSiteRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetSite()
	}
	a.eventually("a job of beta runs here", func() bool { return own().GetRunningAttempts() == 1 })
	place(2)
	copies := func() int64 {
		r, err := a.trustClient().GetTrustedSite(a.ctx(), &kithv1.GetTrustedSiteRequest{SiteId: "beta"})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetSite().GetCopiesHere()
	}
	a.eventually("a copy of beta waits here", func() bool { return own().GetQueuedCopies() == 1 && copies() == 2 })
	beta.idle("beta")
	id := a.submit(withInput('a'))
	at := attemptOf(t, id, 1)
	chunk := beta.taken(at).GetInputs().GetFiles()[0].GetChunks()[0]
	if r := beta.asks(at, chunk); len(r.GetData()) != 1000 {
		t.Fatalf("who holds the claim gets %v", r)
	}
	lane := a.lane(a.beta)
	lane.key()
	a.eventually("the lane is up", func() bool { return a.d.gossip.Up("beta") })

	a.begin()
	began := time.Now()
	r, err := a.trustClient().RevokeSite(a.ctx(), &kithv1.RevokeSiteRequest{SiteId: "beta", Reason: "hostile"})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.GetSevered(); s.GetAttemptsStopped() != 1 || s.GetCopiesDropped() < 1 {
		t.Errorf("ended: %v", s)
	}
	for { // what was on its way
		if _, err = beta.stream.Recv(); err != nil {
			break
		}
	}
	t.Logf("the last byte of the stream came %v after the site was revoked", time.Since(began))
	if status.Code(err) == codes.DeadlineExceeded { // it was silent for three heartbeats
		t.Errorf("its stream was not closed: %v", err)
	}
	a.eventually("the lane is closed", func() bool { return !a.d.gossip.Up("beta") })
	t.Logf("the lane was closed %v after", time.Since(began))
	a.eventually("its attempt and its copy are gone", func() bool {
		// Those whose origin is away are in the queue and count for nothing there.
		return own().GetRunningAttempts() == 0 && copies() == 0
	})
	for range 5 {
		again := a.stream(conn)
		again.say(helloOf("beta"))
		if _, err := again.stream.Recv(); err == nil {
			t.Error("a new stream on the old connection is taken")
		} else if code := status.Code(err); code != codes.PermissionDenied && code != codes.Unavailable {
			t.Errorf("a new stream on the old connection: %v", err)
		}
	}
	if err := a.enter(a.beta.end.ClientTLS("alpha", "kith-gossip/1")); err == nil {
		t.Error("a new lane is taken")
	}
	a.eventually("the refusals are in the audit log", func() bool {
		return len(a.audited("refused-hello"))+len(a.audited("refused-handshake")) > 0 && len(a.audited("revoke")) == 1
	})
	a.quiet("a revoked site")

	if err := a.d.admitKnown([]meta.AdmitSite{{Site: "beta", Bundle: bundleFact(a.beta.bundle(), store.KeyID{}), Actor: "test"}}); err != nil {
		t.Fatal(err)
	}
	var back *rogue
	a.eventually("it is let in again", func() bool {
		s, err := kithv1.NewPeerServiceClient(a.peers(a.beta)).Connect(a.ctx())
		if err != nil {
			return false
		}
		back = &rogue{t, s}
		back.say(helloOf("beta"))
		_, err = s.Recv()
		return err == nil
	})
	if r := back.asks(at, chunk); len(r.GetData()) > 0 || r.GetError() == kithv1.FileReply_ERROR_UNSPECIFIED {
		t.Errorf("what it held before is read again: %.200v", r)
	}
}

// granted has an insider place a copy at alpha, be claimed and grant it with inputs. It
// serves what alpha asks for and returns the result.
func (r *rogue) granted(n int, files []*kithv1.File, serve func(offset int64, limit int) []byte) *kithv1.AttemptOutcome {
	r.t.Helper()
	at := attemptOf(r.t, fmt.Sprint("beta.1.", n), 1)
	work, err := proto.Marshal(&kithv1.Payload{
		Job:    &kithv1.Job{Command: []string{"/bin/true"}, Processors: 1, Walltime: durationpb.New(time.Minute)},
		Inputs: &kithv1.FileSet{Files: files},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_PlaceCopy{PlaceCopy: &kithv1.PlaceCopy{
		Attempt: at, Request: &kithv1.CopyRequest{Processors: 1, WalltimeNs: int64(time.Minute)},
	}}})
	r.hear(func(m *kithv1.PeerMessage) bool { return proto.Equal(m.GetClaim().GetAttempt(), at) })
	r.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_Verdict{Verdict: &kithv1.Verdict{Attempt: at, Granted: true, Payload: work}}})
	var o *kithv1.AttemptOutcome
	r.hear(func(m *kithv1.PeerMessage) bool {
		if q := m.GetFileRequest(); q != nil {
			data := serve(q.GetOffset(), int(q.GetLimit()))
			r.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_FileReply{FileReply: &kithv1.FileReply{Request: q.GetRequest(), Data: data, End: true}}})
		}
		o = m.GetResult().GetOutcome()
		return o != nil && proto.Equal(m.GetResult().GetAttempt(), at)
	})
	r.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_ResultAck{ResultAck: &kithv1.ResultAck{Attempt: at, Accepted: true}}})
	return o
}

// Inputs that are a bomb, that are not the bytes that were promised, or that lead out of
// the folder start nothing, and leave little on the disk.
func TestHostileInputs(t *testing.T) {
	t.Parallel()
	const size, quota = 100_000, 4 << 20
	a := attack(t, func(c *config.Config) { c.Files.QuotaBytes = quota })
	beta := a.joined(a.beta)
	content := bytes.Repeat([]byte{'x'}, size)
	sum := sha256.Sum256(content)
	good := func(offset int64, limit int) []byte { return content[offset:min(int(offset)+limit, size)] }
	file := func(path string) *kithv1.File {
		return &kithv1.File{Path: path, SizeBytes: size, Chunks: [][]byte{sum[:]}}
	}
	never := file("in")
	otherSum := sha256.Sum256([]byte("other bytes"))
	never.Chunks = [][]byte{otherSum[:]}
	var bomb []*kithv1.File
	for i := range 1000 {
		bomb = append(bomb, file(fmt.Sprintf("f%04d", i)))
	}
	a.begin()
	n := 0
	for rule, c := range map[string]struct {
		files []*kithv1.File
		serve func(int64, int) []byte
	}{
		"too-large":   {bomb, good},
		"wrong-bytes": {[]*kithv1.File{never}, func(offset int64, limit int) []byte { return make([]byte, len(good(offset, limit))) }},
		"bad-set":     {[]*kithv1.File{file("../../out")}, good},
	} {
		for range 5 {
			n++
			if o := beta.granted(n, c.files, c.serve); o.GetKind() != 2 || !strings.Contains(o.GetReason(), "not started") {
				t.Errorf("%s: %v", rule, o)
			}
		}
		a.tells("refused-inputs", rule, "beta")
	}
	a.quiet("inputs")
	if used := diskUse(t, a.cfg.Data); used > 3*quota/2 {
		t.Errorf("%d bytes are on the disk", used)
	}
	if o := beta.granted(99, []*kithv1.File{file("in")}, good); o.GetKind() != 1 {
		t.Errorf("good inputs: %v", o)
	}
	for _, rule := range []string{"too-large", "wrong-bytes", "bad-set"} {
		if got := a.refused("refused-inputs", rule); got != 5 {
			t.Errorf("%d refusals by %q", got, rule)
		}
	}
}

// diskUse returns how many bytes files of jobs have in the data folder.
func diskUse(t *testing.T, data string) (n int64) {
	t.Helper()
	for _, folder := range []string{AttemptsFolder, "blobs"} {
		err := filepath.Walk(filepath.Join(data, folder), func(_ string, i os.FileInfo, err error) error {
			if err == nil && i.Mode().IsRegular() {
				n += i.Size()
			}
			return nil // an attempt's folder may go meanwhile
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// An outcome that brings files that the job does not declare, or that lead out of its
// folder, or times and figures that cannot be, is taken without them, and says so.
func TestHostileOutcomes(t *testing.T) {
	t.Parallel()
	a := attack(t, nil)
	_, open := a.busy()
	defer open()
	beta := a.joined(a.beta)
	beta.idle("beta")
	now := time.Now()
	list := func(paths ...string) []byte {
		set := &kithv1.FileSet{}
		slices.Sort(paths)
		for _, p := range paths {
			set.Files = append(set.Files, &kithv1.File{Path: p, SizeBytes: 2, Inline: []byte("hi")})
		}
		b, err := proto.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	a.begin()
	for name, c := range map[string]struct {
		change func(*kithv1.AttemptOutcome)
		rule   string
		files  string // that are taken
		says   string
	}{
		"as it should be":  {func(o *kithv1.AttemptOutcome) { o.Files = list("out/x", "stdout") }, "", "out/x stdout", ""},
		"not declared":     {func(o *kithv1.AttemptOutcome) { o.Files = list(".bashrc", ".ssh/authorized_keys", "stdout") }, "not-declared", "stdout", "not declared"},
		"escaping":         {func(o *kithv1.AttemptOutcome) { o.Files = list("out/../../.bashrc", "stdout") }, "bad-set", "", "not valid"},
		"absolute":         {func(o *kithv1.AttemptOutcome) { o.Files = list("/etc/passwd") }, "bad-set", "", "not valid"},
		"times of 1970":    {func(o *kithv1.AttemptOutcome) { o.StartTimeNs, o.EndTimeNs = 1, 2 }, "impossible-times", "", "times cannot be true"},
		"in the year 2262": {func(o *kithv1.AttemptOutcome) { o.StartTimeNs, o.EndTimeNs = math.MaxInt64-1, math.MaxInt64 }, "impossible-times", "", "times cannot be true"},
		"figures":          {func(o *kithv1.AttemptOutcome) { o.CpuTimeNs, o.MaxRssBytes = -1, 1<<60 }, "impossible-figures", "", "out of bounds"},
	} {
		j := shell("true")
		j.Processors, j.Copies = 2, 2
		j.Outputs = []*kithv1.OutputFile{{Path: "out/"}}
		id := a.submit(j)
		at := attemptOf(t, id, 1)
		beta.taken(at)
		beta.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_Started{Started: &kithv1.Started{Attempt: at, StartTimeNs: now.UnixNano()}}})
		o := &kithv1.AttemptOutcome{Kind: 1, StartTimeNs: now.UnixNano(), EndTimeNs: now.UnixNano()}
		c.change(o)
		beta.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_Result{Result: &kithv1.Result{Attempt: at, Outcome: o}}})
		got := a.waitState(id, completed).GetStatus().GetOutcome()
		var files []string
		for _, f := range got.GetOutputs() {
			files = append(files, f.GetPath())
		}
		if strings.Join(files, " ") != c.files || !strings.Contains(got.GetReason(), c.says) {
			t.Errorf("%s: files %q, %q", name, files, got.GetReason())
		}
		if end := a.get(id).GetStatus().GetEndTime().AsTime(); end.Before(now.Add(-time.Hour)) || end.After(time.Now().Add(time.Hour)) {
			t.Errorf("%s: it ended at %v", name, end)
		}
		if c.rule != "" {
			a.tells("refused-result", c.rule, "beta")
		}
	}
	a.quiet("outcomes")
}

// A site that attracts jobs, holds them, lies about them and never finishes takes no more
// than it was given: others run here, it is seen in what is told of the site, and the
// operator takes the jobs back.
func TestHostileHolder(t *testing.T) {
	t.Parallel()
	a := attack(t, nil)
	_, open := a.busy()
	beta := a.joined(a.beta)
	beta.idle("beta")
	show := func() *kithv1.TrustedSite {
		r, err := a.trustClient().GetTrustedSite(a.ctx(), &kithv1.GetTrustedSiteRequest{SiteId: "beta"})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetSite()
	}
	var ids []string
	for range 4 {
		j := shell("true")
		j.Processors, j.Copies = 2, 2
		ids = append(ids, a.submit(j))
	}
	for _, id := range ids[:2] {
		beta.taken(attemptOf(t, id, 1))
	}
	a.begin()
	far := &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Started{Started: &kithv1.Started{Attempt: attemptOf(t, ids[0], 1), StartTimeNs: math.MaxInt64}}}
	for range 50 {
		beta.say(far)
	}
	beta.settled()
	a.tells("refused-result", "impossible-times", "beta")
	open()
	for _, id := range ids[2:] {
		a.waitState(id, completed)
	}
	a.quiet("a holder that lies")
	for _, id := range ids[:2] {
		if at := a.get(id).GetStatus().GetHostSiteId(); at != "beta" {
			t.Errorf("job %s is at %q", id, at)
		}
	}
	if s := show(); s.GetHeldJobs() != 2 || s.GetOldestClaimTime() == nil || s.GetOverdueJobs() != 0 {
		t.Errorf("shown: %v", s)
	}
	r, err := a.trustClient().RevokeSite(a.ctx(), &kithv1.RevokeSiteRequest{SiteId: "beta"})
	if err != nil || r.GetSevered().GetJobsRevoked() != 2 {
		t.Fatalf("revoked: %v, %v", r, err)
	}
	if s := show(); s.GetHeldJobs() != 0 {
		t.Errorf("shown afterwards: %v", s)
	}
}
