package flood

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"kith/internal/job"
	"kith/meta/trust"
)

// processArgument makes a program that begins with [Main] a flood.
const processArgument = "__flood"

// Computing is the kind that sends nothing and computes all the time: what it does to
// others is the machine's doing, not the site's.
const Computing = "computing only"

// Order says what a process of a flood does.
type Order struct {
	// Kind is the name of a kind, or [Computing]. PerSecond is as of [Start].
	Kind      string
	PerSecond int
	// Site and Address are of the target, SiteKeys the folder with its CA.
	Site     string
	Address  string
	SiteKeys string
	// As and Keys are the name and the folder of keys of who floods.
	As   string
	Keys string
	From string
}

// Main makes the calling program able to be a flood. A program calls it first of all,
// and exits with the code if handled is true: then it was started as one, and has ended.
func Main(args []string) (handled bool, code int) {
	if len(args) != 3 || args[1] != processArgument {
		return false, 0
	}
	if err := serve(args[2], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "flood:", err)
		return true, 1
	}
	return true, 0
}

// serve floods between a line of input and the next, and answers each with a line of how
// many it has sent, until the input ends.
func serve(order string, in io.Reader, out io.Writer) error {
	var o Order
	if err := json.Unmarshal([]byte(order), &o); err != nil {
		return err
	}
	begin, err := o.prepare()
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	var total int64
	for lines.Scan() {
		ctx, stop := context.WithCancel(context.Background())
		end := begin(ctx)
		if _, err := fmt.Fprintln(out, total); err != nil {
			stop()
			return err
		}
		lines.Scan()
		stop()
		total += end()
		if _, err := fmt.Fprintln(out, total); err != nil {
			return err
		}
	}
	return lines.Err()
}

// prepare returns what begins to flood, which returns what waits for its end and tells
// how many were sent.
func (o *Order) prepare() (begin func(context.Context) (end func() int64), err error) {
	if o.Kind == Computing {
		return func(ctx context.Context) func() int64 {
			ended := make(chan int64)
			go func() {
				for ctx.Err() == nil {
				}
				ended <- 0
			}()
			return func() int64 { return <-ended }
		}, nil
	}
	kinds := Kinds()
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == o.Kind })
	if i < 0 {
		return nil, fmt.Errorf("kind %q: there is none of that name", o.Kind)
	}
	t := Target{Site: job.SiteID(o.Site), Address: o.Address, From: o.From, As: &trust.Endpoint{Trusted: new(trust.Set), Now: time.Now}}
	if t.As.Keys, err = trust.Open(o.Keys, job.SiteID(o.As), time.Now()); err != nil {
		return nil, err
	}
	b, err := trust.OwnBundle(o.SiteKeys)
	if err == nil {
		err = t.As.Trusted.Put(b)
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) func() int64 {
		f := Start(ctx, t, kinds[i], o.PerSecond)
		return func() int64 {
			f.Wait()
			return f.Sent()
		}
	}, nil
}

// Process is a flood as a process of its own. It has one processor of the machine and
// the lowest priority, so that what it computes is not taken from the site.
type Process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// NewProcess starts the running program, which has to begin with [Main], as a flood that
// rests.
func NewProcess(o Order) (*Process, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(path, processArgument, string(text))}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.lines = bufio.NewScanner(out)
	return p, startLow(p.cmd)
}

// startLow starts a program on the last processor that this one may use, with the lowest
// priority. Both belong to a thread and are inherited from the one that forks; this one
// ends with its goroutine, as it is never unlocked.
func startLow(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		var may, last unix.CPUSet
		err := unix.SchedGetaffinity(0, &may)
		for i := len(may)*64 - 1; i >= 0 && last.Count() == 0; i-- {
			if may.IsSet(i) {
				last.Set(i)
			}
		}
		if err == nil {
			err = errors.Join(unix.SchedSetaffinity(0, &last), unix.Setpriority(unix.PRIO_PROCESS, 0, 19))
		}
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	return <-started
}

// Begin has the flood begin.
func (p *Process) Begin() error {
	_, err := p.turn()
	return err
}

// End has the flood rest, and returns how many it has sent since it was started.
func (p *Process) End() (int64, error) { return p.turn() }

func (p *Process) turn() (sent int64, err error) {
	if _, err := fmt.Fprintln(p.in); err != nil {
		return 0, err
	}
	if !p.lines.Scan() {
		return 0, errors.Join(errors.New("the flood has ended by itself"), p.lines.Err())
	}
	_, err = fmt.Sscan(p.lines.Text(), &sent)
	return sent, err
}

// Close ends the process.
func (p *Process) Close() error {
	p.in.Close() //nolint:errcheck // it may have ended
	return p.cmd.Wait()
}
