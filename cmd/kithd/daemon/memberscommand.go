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
	cmd := &cobra.Command{Use: "members", Short: "Begin a site of several machines that keep its facts together, or end it"}
	// member is the configuration of a member.
	member := func() (config.Config, error) {
		if err := mayRun(os.Geteuid(), asRoot, os.Getenv(asRootVariable)); err != nil {
			return config.Config{}, err
		}
		cfg, err := config.Load(*path)
		if err != nil {
			return cfg, badConfig(err)
		}
		if cfg.Members.Self == "" {
			return cfg, cli.Usagef("%s: members.self is missing: name this machine among the members of the site", *path)
		}
		return cfg, nil
	}
	found := &cobra.Command{
		Use: "found", Short: "Make this machine the first member of a site", Args: cobra.NoArgs,
		Long: "found makes the facts of a site at its first member, in the folder members of the data folder. It is done at one\n" +
			"machine, once. The others have the same site, members.cluster and keys, and wait to be added by kith site members add.\n\n" +
			"If the data folder has the facts of a site of one machine, which is stopped, that site goes on with them: its jobs, the\n" +
			"sites that it trusts, its generation. kith.db is kept as kith.db.before.",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := member()
			if err != nil {
				return err
			}
			jobs, err := FoundMember(cfg)
			if err != nil {
				return err
			}
			return p.Print(struct {
				Site    string `json:"site"`
				Member  string `json:"member"`
				Address string `json:"address"`
				Jobs    int    `json:"jobs"`
			}{cfg.Site, cfg.Members.Self, cfg.MemberAddress(), jobs}, func() string {
				return fmt.Sprintf("site %s is founded with member %s at %s and %s\nStart it, and those that are to be its other members; then add each of them:\n"+
					"kith site members add NAME HOST:PORT\n", cfg.Site, cfg.Members.Self, cfg.MemberAddress(), cli.Plural(int64(jobs), "job", "jobs"))
			})
		},
	}
	end := &cobra.Command{
		Use: "end", Short: "Make a site of one machine of its last member", Args: cobra.NoArgs,
		Long: "end makes kith.db, the facts of a site of one machine, at the last member of a site, which is stopped. The others were removed by\n" +
			"kith site members remove. Nothing may run at the site's own processors. Take members.self out of the configuration then. The folder members is kept as members.before.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := member()
			if err != nil {
				return err
			}
			if err := EndMembers(cmd.Context(), cfg); err != nil {
				return err
			}
			return p.Print(struct {
				Site string `json:"site"`
			}{cfg.Site}, func() string {
				return fmt.Sprintf("site %s is one machine again\nTake the section members out of its configuration and start it.\n", cfg.Site)
			})
		},
	}
	end.Flags().BoolVar(&asRoot, "as-root", false, "make it for a kithd that runs as root")
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
	cmd.AddCommand(found, end, id)
	return cmd
}
