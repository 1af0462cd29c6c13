package daemon

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"kith/cmd/kithd/config"
	"kith/internal/cli"
	"kith/store/raftstore"
)

// membersVerb is "kithd members".
func membersVerb(p *cli.Program, path *string) *cobra.Command {
	asRoot := false
	cmd := &cobra.Command{Use: "members", Short: "Begin a site of several machines that keep its facts together"}
	found := &cobra.Command{
		Use: "found", Short: "Make the facts of a new site, of which this machine is the first member", Args: cobra.NoArgs,
		Long: "found makes the facts of a new site at its first member, in the folder members of the data folder. It is done at one\n" +
			"machine, once. The others have the same site, members.cluster and keys, and wait to be added by kith site members add.",
		RunE: func(*cobra.Command, []string) error {
			if err := mayRun(os.Geteuid(), asRoot, os.Getenv(asRootVariable)); err != nil {
				return err
			}
			cfg, err := config.Load(*path)
			if err != nil {
				return badConfig(err)
			}
			if cfg.Members.Self == "" {
				return cli.Usagef("%s: members.self is missing: name this machine among the members of the site", *path)
			}
			if err := FoundMember(cfg); err != nil {
				return err
			}
			return p.Print(struct {
				Site    string `json:"site"`
				Member  string `json:"member"`
				Address string `json:"address"`
			}{cfg.Site, cfg.Members.Self, cfg.MemberAddress()}, func() string {
				return fmt.Sprintf("site %s is founded with member %s at %s\nStart it, and those that are to be its other members; then add each of them:\n"+
					"kith site members add NAME HOST:PORT\n", cfg.Site, cfg.Members.Self, cfg.MemberAddress())
			})
		},
	}
	found.Flags().BoolVar(&asRoot, "as-root", false, "make it for a kithd that runs as root")
	id := &cobra.Command{
		Use: "id", Short: "Draw an id for members.cluster", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			id := fmt.Sprintf("%x", raftstore.NewCluster())
			return p.Print(struct {
				Cluster string `json:"cluster"`
			}{id}, func() string { return id + "\n" })
		},
	}
	cmd.AddCommand(found, id)
	return cmd
}
