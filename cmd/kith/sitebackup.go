package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store/backup"
)

// siteBackupVerb is "kith site backup".
func siteBackupVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the facts of this site into a file, while it runs",
		Long: `Write the facts of this site into FILE, which must not be there: its jobs and bags with
what they run, what it holds for other sites, the sites that it trusts, what is past.
The site goes on meanwhile. FILE has its name once it is whole, checked and on the disk.

It has what users have had the site run, with their environments: keep it as secret as
the data folder. Inputs and outputs of jobs, the audit log and the site's keys are not
in it. "kithd restore FILE" makes a data folder of it.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.attend(cmd.Context(), func(ctx context.Context, s *site) error {
				stream, err := s.sites.BackupSite(ctx, &kithv1.BackupSiteRequest{})
				if err != nil {
					return err
				}
				var failed error // of the site, in whose words it is told
				head, err := backup.Make(args[0], func(w io.Writer) error {
					for {
						piece, err := stream.Recv()
						if errors.Is(err, io.EOF) {
							return nil
						}
						if err != nil {
							failed = err
							return err
						}
						if _, err := w.Write(piece.GetData()); err != nil {
							return err
						}
					}
				})
				if failed != nil {
					return failed
				}
				if err != nil {
					return cli.Refusedf("site backup: %v", cli.Bare(err))
				}
				return c.Print(head, func() string {
					return fmt.Sprintf("%s has the facts of site %s as of %s, %d bytes\n", cli.Clean(args[0]), head.Site, head.Made.Local().Format(time.DateTime), head.Size)
				})
			})
		},
	}
}
