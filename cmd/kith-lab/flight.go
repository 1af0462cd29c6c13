package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/internal/job"
	"kith/internal/pathkind"
	"kith/meta"
	"kith/meta/flight"
)

// mostFlight is how large a file is played at most, in bytes: it is held in memory.
const mostFlight = 4 << 30

// flightOptions say what is shown of a recording.
type flightOptions struct {
	steps, state bool
	job          job.ID
	step         uint64    // the last one to be played; 0 for all
	time         time.Time // likewise
}

// flightVerb is "kith-lab flight".
func flightVerb(p *cli.Program) *cobra.Command {
	var o flightOptions
	var until, id string
	cmd := &cobra.Command{
		Use:   "flight FILE [--steps] [--state] [--job ID] [--until STEP|TIME]",
		Short: "Play what a site recorded of its engines again, and step through it",
		Long: `Play what a site recorded of its engines again: a file of the folder "flight" in
its data folder, see flight.enabled in its configuration. One file is enough: it
begins with the state of the site.

The same engines take up the same events at the same times. After each, what
comes of it is compared with what came of it then, and from time to time the
whole state. The exit code is 1 if anything differs, with the first step that
does, or if an engine panics, as it may have done then.

Of what jobs ran and left the file has the number of bytes only.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(until, id); err != nil {
				return err
			}
			return playFlight(cmd.Context(), p, args[0], o)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&o.steps, "steps", false, "print each step: its event, and the effects that came of it")
	flags.BoolVar(&o.state, "state", false, "print the state after the last step that is played")
	flags.StringVar(&id, "job", "", "print only steps that name the job or bag `ID`, and what names it of the state; prints steps")
	flags.StringVar(&until, "until", "", "play until this step, or the last one before this time, as `STEP|TIME`: 1200, 2026-11-26T14:03:00Z")
	return cmd
}

func (o *flightOptions) parse(until, id string) (err error) {
	if id != "" {
		if o.job, err = job.ParseID(id); err != nil {
			return cli.Usagef("--job %q: %v", id, err)
		}
		o.steps = true
	}
	if until == "" {
		return nil
	}
	if n, err := strconv.ParseUint(until, 10, 64); err == nil && n > 0 {
		o.step = n
		return nil
	}
	if o.time, err = time.Parse(time.RFC3339Nano, until); err != nil {
		return cli.Usagef("--until %q: give the number of a step, from 1, or a time like 2026-11-26T14:03:00Z", until)
	}
	return nil
}

// past reports whether a step comes after all that is to be played.
func (o flightOptions) past(number uint64, at job.Time) bool {
	return o.step > 0 && number > o.step || !o.time.IsZero() && at.Wall().After(o.time)
}

// flightStep is a step as it is printed.
type flightStep struct {
	Step    uint64   `json:"step"`
	Time    string   `json:"time"`
	Kind    string   `json:"kind"`
	Event   string   `json:"event"`
	Effects []string `json:"effects"`
}

// flightReport is what "kith-lab flight --output json" prints.
type flightReport struct {
	File string `json:"file"`
	flight.Header
	Steps   int          `json:"steps"`
	First   string       `json:"first,omitempty"`
	Last    string       `json:"last,omitempty"`
	States  int          `json:"states_compared"`
	Ended   string       `json:"ended,omitempty"`
	Differs string       `json:"differs,omitempty"`
	Panic   string       `json:"panic,omitempty"`
	Stack   string       `json:"stack,omitempty"`
	Printed []flightStep `json:"printed_steps,omitempty"`
	State   []string     `json:"state,omitempty"`
}

func openFlight(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, cli.Usagef("flight: %v", err)
	}
	if info.IsDir() {
		newest := ""
		if entries, err := os.ReadDir(path); err == nil {
			for _, e := range slices.Backward(entries) {
				if _, is := flight.NumberOf(e.Name()); is {
					newest = "; its newest is " + filepath.Join(path, e.Name())
					break
				}
			}
		}
		return nil, cli.Usagef("flight: %s is a folder: name one of its files%s", path, newest)
	}
	if err := pathkind.File(path); err != nil {
		return nil, cli.Usagef("flight: %v", err)
	}
	if info.Size() > mostFlight {
		return nil, cli.Usagef("flight: %s has %d bytes; a recording has at most %d", path, info.Size(), int64(mostFlight))
	}
	return os.Open(path)
}

func playFlight(ctx context.Context, p *cli.Program, path string, o flightOptions) error {
	f, err := openFlight(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	player, err := flight.Open(f)
	if err != nil {
		return cli.Refusedf("flight: %s: %v", path, err)
	}
	player.Stop = o.past
	r := &flightReport{File: path, Header: player.Header}
	if err := r.play(ctx, p, player, &o); err != nil {
		return err
	}
	if o.state {
		for l := range player.State() {
			if o.job.IsZero() || flight.Names(l, o.job) {
				r.State = append(r.State, l.Path+" = "+l.Text)
			}
		}
	}
	if err := p.Print(r, r.text); err != nil {
		return err
	}
	if what := r.Differs + r.Panic; what != "" {
		return cli.Refusedf("flight: %s", what)
	}
	return nil
}

// play plays all steps and notes them. Those that are to be printed are, or are noted for
// programs.
func (r *flightReport) play(ctx context.Context, p *cli.Program, player *flight.Player, o *flightOptions) error {
	defer func() { r.States, r.Ended = player.States(), player.Ended() }()
	for ctx.Err() == nil {
		s, err := player.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		r.note(s)
		if o.steps && o.concerns(s) {
			if step := printable(s); p.JSON() {
				r.Printed = append(r.Printed, step)
			} else if err := p.Write(step.text()); err != nil {
				return err
			}
		}
		var differs *flight.Divergence
		var panics *flight.Panic
		switch {
		case errors.As(err, &differs):
			r.Differs = differs.Error()
			return nil
		case errors.As(err, &panics):
			r.Panic, r.Stack = panics.Error(), panics.Stack
			return nil
		case err != nil:
			return cli.Refusedf("flight: %s: after step %d: %v", r.File, s.Number, err)
		}
	}
	return cli.ExitWith(cli.ExitInterrupted)
}

func (r *flightReport) note(s flight.Step) {
	if s.Event != nil {
		r.Steps++
	}
	at := flightTime(s.Time)
	r.First, r.Last = cmp.Or(r.First, at), at
}

func flightTime(t job.Time) string { return t.Wall().UTC().Format("2006-01-02T15:04:05.000000Z") }

// concerns reports whether a step is to be printed.
func (o *flightOptions) concerns(s flight.Step) bool {
	if o.job.IsZero() {
		return true
	}
	return s.Event != nil && flight.Concerns(&s.Event, o.job) || slices.ContainsFunc(s.Effects, func(f meta.Effect) bool { return flight.Concerns(&f, o.job) })
}

func printable(s flight.Step) flightStep {
	p := flightStep{Step: s.Number, Time: flightTime(s.Time), Kind: flight.Kind(s.Event), Effects: []string{}}
	if s.Event != nil {
		p.Event = flight.Text(s.Event)
	}
	for _, f := range s.Effects {
		p.Effects = append(p.Effects, strings.TrimSpace(f.Word()+" "+flight.Text(f)))
	}
	return p
}

func (s *flightStep) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %s %s\n", s.Step, s.Time, s.Kind, s.Event)
	for _, f := range s.Effects {
		fmt.Fprintf(&b, "    -> %s\n", f)
	}
	return b.String()
}

// text is what people see after the steps.
func (r *flightReport) text() string {
	var b strings.Builder
	for _, line := range r.State {
		b.WriteString(line + "\n")
	}
	fmt.Fprintf(&b, "Site %s, life %d, file %d, by kithd %s.\n", r.Site, r.Incarnation, r.Number, strings.TrimSpace(r.Version+" "+r.Build))
	if r.First != "" {
		fmt.Fprintf(&b, "%d steps from %s to %s, %d states compared.\n", r.Steps, r.First, r.Last, r.States)
	}
	switch {
	case r.Differs != "":
		fmt.Fprintf(&b, "It differs from what was recorded: %s.\n", r.Differs)
	case r.Panic != "":
		fmt.Fprintf(&b, "%s\n\n%s", r.Panic, r.Stack)
	default:
		fmt.Fprintf(&b, "All came out as it was recorded. The end: %s.\n", r.Ended)
	}
	return b.String()
}
