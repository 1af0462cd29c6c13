package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// showVerb is "kith show".
func showVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:               "show JOB",
		Short:             "Tell all that is known of a job",
		ValidArgsFunction: c.completeJobs(false),
		Args:              oneJobOrTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.dial(cmd.Context(), func(ctx context.Context, s *site) error {
				if name, ok := parseTasksName(args[0]); ok {
					return c.showTasks(ctx, s, name)
				}
				got, err := c.getJob(ctx, s, args[0])
				if err != nil {
					return c.bagOr(ctx, s, args[0], err, c.printBag)
				}
				c.noteAge(got.GetAsOfTime())
				return c.printMessage(got, func() string { return c.showText(got.GetJob()) })
			})
		},
	}
}

// facts are lines of a name and a value.
type facts struct{ strings.Builder }

// add adds a line, unless there is no value.
func (f *facts) add(name, value string) {
	if value != "" {
		fmt.Fprintf(&f.Builder, "%-14s%s\n", name, cli.Clean(value))
	}
}

// each adds a line for each value.
func (f *facts) each(name string, values []string) {
	for _, value := range values {
		f.add(name, value)
		name = ""
	}
}

// showText is a job in words.
func (c *client) showText(j *kithv1.Job) string {
	s := j.GetStatus()
	var f facts
	f.add("Job", j.GetId())
	f.add("Name", j.GetName())
	f.add("User", s.GetUser())
	f.add("State", c.stateText(j))
	if !ended(s.GetState()) {
		f.add("Why", s.GetReason())
	}
	f.add("Submitted", c.at(s.GetSubmitTime())+" at "+s.GetOriginSiteId())
	if s.GetEstimatedStartTime() != nil {
		f.add("Est. start", c.at(s.GetEstimatedStartTime())+", by the limits of the jobs ahead")
	}
	if line := c.forecastLine(s.GetForecast()); line != "" {
		f.add("Forecast", line)
	}
	if began(s) {
		f.add("Started", c.at(s.GetStartTime()))
	}
	if away := s.GetHostUnreachableSince(); away != nil {
		f.add("Out of reach", s.GetHostSiteId()+" since "+c.at(away))
	}
	if s.GetEndTime() != nil {
		f.add("Ended", c.at(s.GetEndTime()))
	}
	f.each("Acts", c.actLines(s))
	f.each("After", afterLines(j.GetAfter(), j.GetSingleton()))
	f.add("Asks for", asksFor(j))
	c.addProgram(&f, j)
	f.each("Labels", pairLines(j.GetLabels()))
	f.each("Environment", pairLines(j.GetEnvironment()))
	f.each("Inputs", inputLines(j))
	outputs := []string{}
	for _, o := range j.GetOutputs() {
		outputs = append(outputs, o.GetPath())
	}
	f.each("Outputs", outputs)
	f.add("Estimate", j.GetEstimate())
	if p := j.GetCheckpoint(); p != nil {
		f.add("Checkpoint", savesText(p))
	}
	f.each("Level", levelLines(s))
	f.add("Stdout", orDefault(j.GetStdoutPath(), defaultStdout))
	f.add("Stderr", orDefault(j.GetStderrPath(), defaultStderr))
	f.each("Attempts", c.demotionLines(s))
	f.each("Saved", c.savedLines(s))
	c.addOutcome(&f, s)
	for i, copied := range s.GetCopies() {
		f.add(first(i, "Copies"), copied.GetSiteId()+": "+copyWord(copied.GetState()))
	}
	return f.String()
}

// actLines says what people did to a job, an act a line.
func (c *client) actLines(s *kithv1.JobStatus) []string {
	var lines []string
	for _, a := range s.GetActs() {
		text := c.at(a.GetTime()) + " " + actWord(a.GetKind())
		if a.GetSiteId() != "" {
			text += " " + a.GetSiteId()
		}
		text += " by " + orDefault(a.GetActor(), byRule)
		if a.GetReason() != "" {
			text += ": " + a.GetReason()
		}
		lines = append(lines, text)
	}
	return lines
}

// stateText says where a job is in its life.
func (c *client) stateText(j *kithv1.Job) string {
	s := j.GetStatus()
	text := stateWord(s.GetState())
	if s.GetHostSiteId() != "" {
		text += " at " + s.GetHostSiteId()
	}
	if began(s) {
		text += fmt.Sprintf(", ran %s of %s", c.runText(j), limitText(j))
	}
	if s.GetAttempt() > 1 {
		text += fmt.Sprintf(", attempt %d", s.GetAttempt())
	}
	return text
}

func asksFor(j *kithv1.Job) string {
	text := cli.Plural(int64(j.GetProcessors()), "processor", "processors")
	if j.GetTasks() > 1 {
		text += fmt.Sprintf(" for %d tasks", j.GetTasks())
	}
	text += ", " + limitText(j)
	if j.GetMemoryBytes() > 0 {
		text += ", " + byteCount(j.GetMemoryBytes())
	}
	if j.GetCopies() > 0 {
		text += ", " + cli.Plural(int64(j.GetCopies()), "copy", "copies")
	}
	switch j.GetOnSiteLost() {
	case kithv1.Job_ON_SITE_LOST_RERUN:
		text += ", rerun when its site is lost"
	case kithv1.Job_ON_SITE_LOST_RACE:
		text += ", race when its site is lost"
	}
	return text
}

func (c *client) addProgram(f *facts, j *kithv1.Job) {
	if len(j.GetCommand()) > 0 {
		f.add("Command", quoteAll(j.GetCommand()))
	}
	if script := strings.TrimSuffix(j.GetScript(), "\n"); script != "" {
		f.each("Script", strings.Split(script, "\n"))
		f.add("Arguments", quoteAll(j.GetArguments()))
	}
	f.add("Folder", orDefault(j.GetWorkingDirectory(), "its private folder"))
}

func (c *client) addOutcome(f *facts, s *kithv1.JobStatus) {
	o := s.GetOutcome()
	if o == nil {
		return
	}
	f.add("Outcome", orDefault(howItEnded(s), "exit code 0"))
	if o.GetCpuTime() != nil {
		f.add("CPU time", spanOf(o.GetCpuTime()))
	}
	if o.GetMaxRssBytes() > 0 {
		f.add("Most memory", byteCount(o.GetMaxRssBytes()))
	}
	for i, out := range o.GetOutputs() {
		f.add(first(i, "Came back"), out.GetPath()+", "+byteCount(out.GetSizeBytes()))
	}
}

func inputLines(j *kithv1.Job) []string {
	var lines []string
	for _, in := range j.GetInputs() {
		text := in.GetPath()
		if in.GetExecutable() {
			text += " (executable)"
		}
		lines = append(lines, text)
	}
	return lines
}

func pairLines(m map[string]string) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, name+"="+m[name])
	}
	return lines
}

// quoteAll writes words so that a shell would read them as they are.
func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$&|;<>()*?[]{}#~`!") {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

func copyWord(s kithv1.CopyStatus_State) string {
	switch s {
	case kithv1.CopyStatus_STATE_PLACING:
		return "sent, not confirmed"
	case kithv1.CopyStatus_STATE_QUEUED:
		return "queued"
	case kithv1.CopyStatus_STATE_CLAIMED:
		return "holds the claim"
	case kithv1.CopyStatus_STATE_WITHDRAWING:
		return "withdrawn, not confirmed"
	}
	return "unknown"
}

// first returns the name for the first line of several.
func first(i int, name string) string {
	if i > 0 {
		return ""
	}
	return name
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
