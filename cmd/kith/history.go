package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/cli"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/workload"
)

// historyVerb is "kith history", what operators do with the past of their site.
func historyVerb(c *client) *cobra.Command {
	cmd := &cobra.Command{Use: "history", Short: "Hand on what a site did"}
	cmd.AddCommand(historyExportVerb(c))
	return cmd
}

func historyExportVerb(c *client) *cobra.Command {
	var submitted, force bool
	cmd := &cobra.Command{
		Use:   "export [--submitted] [--force] [FILE]",
		Short: "Write the jobs that ran at this site as a log that can be replayed",
		Long: `Write the jobs that ran at this site, its own and those of other sites, in the
Standard Workload Format into FILE, or to stdout if none is named: one line for
each attempt that ended here, as many as the site remembers (100,000). What came
from elsewhere counts as submitted when it came. "kith replay --trace FILE" replays
it. With --submitted they are instead the jobs that were submitted at this site,
wherever they ran.

Users, and names of jobs, are numbers. They are made with a secret of the site: the
same user has the same number in each export of a site, and who has the export but
not the secret cannot try names. Commands, scripts and files are not in it.

Times are in whole seconds of UTC. Run times and limits are those of a processor
of this site. Tasks of bags leave no record and are not in it.`,
		Example: `  kith history export october.swf
  kith replay --trace october.swf --policy easy`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := ""
			if len(args) > 0 {
				file = args[0]
			}
			return c.attend(cmd.Context(), func(ctx context.Context, s *site) error { return c.exportHistory(ctx, s, file, submitted, force) })
		},
	}
	cmd.Flags().BoolVar(&submitted, "submitted", false, "the jobs that were submitted at this site, wherever they ran")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite FILE if it is there already")
	return cmd
}

// exportHistory writes the past of a site into a file, to stdout if it has no name.
func (c *client) exportHistory(ctx context.Context, s *site, file string, submitted, force bool) error {
	if file == "" && c.JSON() {
		return cli.Usagef("history export: a log is no JSON; name a FILE for it, or leave --output out")
	}
	create := cli.CreateNew
	if force {
		create = cli.CreateFile
	}
	out, err := create("history export", file)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // What is left of a file that is not there does no harm.
	about, err := s.sites.GetSite(ctx, &kithv1.GetSiteRequest{})
	if err != nil {
		return err
	}
	past, err := history(ctx, s)
	if err != nil {
		return err
	}
	log := historyLog(about.GetSite(), past, submitted)
	if out == nil {
		var b strings.Builder
		if err := workload.WriteSWF(&b, log); err != nil {
			return err
		}
		return c.Write(b.String())
	}
	if err := out.Write(func(w io.Writer) error { return workload.WriteSWF(w, log) }); err != nil {
		return cli.Refusedf("%s: %v", file, cli.Bare(err))
	}
	return c.Print(map[string]any{"file": file, "jobs": len(log.Jobs)}, func() string {
		return cli.Clean(file) + "  " + cli.Plural(int64(len(log.Jobs)), "job", "jobs") + "\n"
	})
}

// mostHistory bounds what is taken of a site that does not come to an end: ten times what
// one remembers.
const mostHistory = 1_000_000

// history asks for all that is past.
func history(ctx context.Context, s *site) (all []*kithv1.PastAttempt, err error) {
	r := &kithv1.ListHistoryRequest{PageSize: 1000}
	for {
		page, err := s.sites.ListHistory(ctx, r)
		if err != nil {
			return nil, err
		}
		all = append(all, page.GetAttempts()...)
		next := page.GetNextPageToken()
		switch {
		case next == "":
			return all, nil
		case len(all) > mostHistory || next == r.GetPageToken():
			return nil, cli.Refusedf("the site tells of %d attempts and comes to no end", len(all))
		}
		r.PageToken = next
	}
}

// The partitions of an export.
const (
	ownPartition   = 1
	guestPartition = 2
)

// historyLog takes the attempts that ran at a site, or those that were submitted there.
func historyLog(about *kithv1.Site, past []*kithv1.PastAttempt, submitted bool) *workload.SWFLog {
	l := &workload.SWFLog{
		Site: cli.Clean(about.GetId()), Processors: about.GetProcessors(),
		Notes: []string{
			"Note: Written by kith history export. Users and executables are numbers made with a secret of the site.",
			"Partition: 1 submitted at this site",
		},
	}
	if submitted {
		l.Notes = append(l.Notes, "Note: Jobs that were submitted at this site, wherever they ran.")
	} else {
		l.Notes = append(l.Notes, "Partition: 2 submitted at other sites", "Note: Jobs that ran at this site.")
	}
	here := func(d *durationpb.Duration) (scaled time.Duration) {
		if d.AsDuration() > 0 {
			scaled = job.Scaled(d.AsDuration(), about.GetSpeed())
		}
		return scaled
	}
	for _, a := range past {
		own := a.GetOriginSiteId() == about.GetId()
		if submitted && !own || !submitted && a.GetHostSiteId() != about.GetId() {
			continue
		}
		j := workload.SWFJob{
			Submit: a.GetSubmitTime().AsTime(), Run: here(a.GetRunTime()), Estimate: here(a.GetWalltime()), Processors: a.GetProcessors(),
			Status: swfStatus(a.GetState()), User: a.GetUserNumber(), Executable: a.GetNameNumber(), Partition: guestPartition,
		}
		if a.GetStartTime() != nil {
			j.Start = a.GetStartTime().AsTime()
		}
		if own {
			j.Partition = ownPartition
		}
		l.Jobs = append(l.Jobs, j)
	}
	return l
}

func swfStatus(s kithv1.JobStatus_State) workload.SWFStatus {
	switch s {
	case kithv1.JobStatus_STATE_COMPLETED:
		return workload.SWFCompleted
	case kithv1.JobStatus_STATE_FAILED, kithv1.JobStatus_STATE_TIMEOUT:
		return workload.SWFFailed
	case kithv1.JobStatus_STATE_CANCELLED:
		return workload.SWFCancelled
	}
	return workload.SWFUnknown
}
