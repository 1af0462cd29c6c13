package shim

import (
	"encoding/binary"
	"math"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kith/internal/estimate"
)

// EstimateName is the file in an attempt's folder that says what the estimator of the job said. The
// daemon makes it blank, and the shim fills it whenever the bound is lower, for those who look how far
// it is, and once more when nothing of the estimator lives any more, before it executes the job's
// command: that counts. It is one slot of text:
//
//	kith-estimate 1 bound=… sum=…
//
// where bound is the least that was printed in this attempt or before, as a decimal number. What
// cannot be read says nothing.
const EstimateName = "estimate"

// EstimateSize is the size of the file.
const EstimateSize = slotSize

const estimateMark = "kith-estimate 1"

// Estimate is an estimator, which runs before the command: on what the job has, in its cgroup and
// within its walltime. It prints lines for package estimate.
type Estimate struct {
	Argv []string
	// Nanos is how long it may run.
	Nanos int64
	// Known is the bound of earlier attempts, 0 for none. Done is what those did.
	Known, Done float64
	// Most is how much may be left of the work by the bound; with more the command is not
	// executed. 0 for no limit.
	Most float64
}

// estimating is an estimator that runs.
type estimating struct {
	reader estimate.Reader
	pipe   int // what it prints, -1 when no more is read
	until  time.Duration
	// why is why it was stopped; empty if it ended by itself.
	why string
}

// startEstimator runs the estimator in place of the command, and reports whether it runs. If it
// cannot be executed the job's command may still be.
func (s *shim) startEstimator(j *running) (running bool, err error) {
	e := &estimating{pipe: -1}
	if k := j.run.Estimate.Known; k > 0 {
		e.reader.Add(k)
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return false, j.cannotFork(err)
	}
	e.pipe = ends[0]
	if unix.SetNonblock(e.pipe, true) != nil || s.poll.add(e.pipe) != nil {
		closeFD(ends[0])
		closeFD(ends[1])
		return false, j.cannotFork(syscall.EMFILE)
	}
	if a := j.run.Account; a != nil { // it may open its stream again by /dev/stdout
		_ = syscall.Fchown(ends[1], int(a.UID), int(a.GID))
	}
	m := *j.run
	m.Argv = j.run.Estimate.Argv
	err = s.fork(j, &m, ends[1])
	closeFD(ends[1])
	if err != nil {
		closeFD(e.pipe)
		if j.exit.Cause != CauseExec {
			return false, err
		}
		s.remark(j, "the estimator was not started: "+j.exit.Reason)
		j.exit.Cause, j.exit.Code, j.exit.Reason = CauseOwn, 0, ""
		s.keepEstimate(j, &e.reader)
		return false, nil
	}
	e.until = s.poll.now() + time.Duration(max(0, min(j.run.Estimate.Nanos, math.MaxInt64/2)))
	j.estimate = e
	return true, nil
}

// hearEstimator reads what the estimator has printed, and writes a bound down that is lower than those before.
func (s *shim) hearEstimator() {
	r := &s.job.estimate.reader
	before, known := r.Least()
	s.readEstimator()
	if least, is := r.Least(); is && (!known || least < before) {
		s.keepEstimate(s.job, r)
	}
}

func (s *shim) readEstimator() {
	e := s.job.estimate
	b := make([]byte, 4096)
	for e.pipe >= 0 {
		n, errno := readSome(e.pipe, b)
		switch {
		case errno == syscall.EAGAIN:
			return
		case errno != 0 || n == 0:
			e.close()
		case !e.reader.Write(b[:n]):
			e.close()
			s.stopEstimator("it printed more than " + strconv.Itoa(estimate.MostLines) + " lines or " + strconv.Itoa(estimate.MostBytes) + " bytes")
		case n < len(b):
			return
		}
	}
}

func (e *estimating) close() {
	closeFD(e.pipe)
	e.pipe = -1
}

// stopEstimator ends the estimator with all that it has started; then the attempt goes on.
func (s *shim) stopEstimator(why string) {
	j := s.job
	if j.phase == killing {
		return
	}
	j.estimate.why = why
	s.kill()
}

// estimated goes on when nothing of the estimator lives: with the command, or with the end of the attempt.
func (s *shim) estimated() {
	j := s.job
	s.hearEstimator()
	e := j.estimate
	e.close()
	e.reader.End(e.why == "" && j.exit.Signal == 0)
	s.keepEstimate(j, &e.reader)
	if j.exit.Cause != CauseOwn { // it was stopped with the attempt
		s.finish()
		return
	}
	s.explainEstimate(j)
	j.exit.Code, j.exit.Signal, j.exit.End, j.exit.Reason = 0, 0, 0, ""
	if most := j.run.Estimate.Most; most > 0 && e.reader.Exceeds(j.run.Estimate.Done, most) {
		least, _ := e.reader.Least()
		j.exit.Cause, j.exit.End = CauseEstimate, wallNow()
		j.exit.Reason = "the job needs at most " + number(least) + " processor-seconds by its estimate, of which " + number(j.run.Estimate.Done) +
			" are done, and its level does " + number(most) + " for one job"
		s.finish()
		return
	}
	if j.cgroup != nil {
		j.cgroup.killed = j.cgroup.memoryKills()
	}
	j.estimate, j.grouped = nil, false
	j.phase, j.over, j.exit.Start = watching, false, wallNow()
	if s.mayBegin(j) {
		s.execute(j)
	}
}

// explainEstimate says in the job's stderr, once, what was wrong with its estimator.
func (s *shim) explainEstimate(j *running) {
	e := j.estimate
	switch {
	case e.why != "":
		s.remark(j, "the estimator was stopped: "+e.why)
	case j.exit.Signal != 0:
		s.remark(j, "the estimator was ended by signal "+strconv.Itoa(j.exit.Signal))
	case j.exit.Code != 0:
		s.remark(j, "the estimator ended with exit code "+strconv.Itoa(j.exit.Code))
	}
	if n := e.reader.Ignored; n > 0 {
		s.remark(j, strconv.Itoa(n)+` of its lines are not "bound SECONDS" with a number above 0 and were ignored, the first: `+strconv.Quote(ClipReason(e.reader.First)))
	}
	if _, known := e.reader.Least(); !known {
		s.remark(j, "the estimator gave no bound")
	}
}

// remark writes a line to the job's stderr, if that has room.
func (s *shim) remark(j *running, text string) {
	_, _ = syscall.Write(j.err, []byte("kith: "+text+"\n"))
}

// keepEstimate writes down what the estimator said.
func (s *shim) keepEstimate(j *running, r *estimate.Reader) {
	least, known := r.Least()
	if !known {
		return
	}
	fd, errno := openat(s.dir, j.run.Folder+"/"+EstimateName, syscall.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errno != 0 {
		return
	}
	if isRegular(fd) {
		_ = writeAt(fd, EstimateFile(least), 0)
	}
	closeFD(fd)
}

// BlankEstimate returns a file that says nothing.
func BlankEstimate() []byte { return BlankRecord()[RecordSize-EstimateSize:] }

// EstimateFile returns the file for a bound.
func EstimateFile(bound float64) []byte {
	b := append(make([]byte, 0, EstimateSize), estimateMark+" bound="...)
	return sealSlot(strconv.AppendFloat(b, bound, 'g', -1, 64), 0)
}

// ParseEstimate reads the file; it returns 0 for what says nothing.
func ParseEstimate(b []byte) float64 {
	if len(b) != EstimateSize {
		return 0
	}
	f := openSlot(b, estimateMark)
	bound, err := strconv.ParseFloat(f.word("bound"), 64)
	if !f.done() || err != nil || !(bound > 0 && bound <= estimate.MostWork) {
		return 0
	}
	return bound
}

// number is a number of processor-seconds for people.
func number(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

func (e *Estimate) append(b []byte) []byte {
	b = appendStrings(b, e.Argv)
	b = binary.AppendVarint(b, e.Nanos)
	for _, x := range []float64{e.Known, e.Done, e.Most} {
		b = binary.AppendUvarint(b, math.Float64bits(x))
	}
	return b
}

func (e *Estimate) decode(d *decoder) {
	e.Argv, e.Nanos = d.strings(), d.int()
	for _, x := range []*float64{&e.Known, &e.Done, &e.Most} {
		*x = math.Float64frombits(d.uint())
	}
}
