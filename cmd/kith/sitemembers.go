package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// noteAge says how old an answer is, if a member has given it while none leads.
func (c *client) noteAge(asOf *timestamppb.Timestamp) {
	if asOf != nil {
		c.Note("the site has no leader at present: this is what one of its machines knew at %s; nothing is taken meanwhile. What runs at other sites goes on; what runs at a machine of this one does, too, but with --on-site-lost rerun only for as long as members.executor_lost says", c.at(asOf))
	}
}

// siteMembersVerb is "kith site members".
func siteMembersVerb(c *client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "members",
		Short: "List the machines that keep this site's facts together, or change them",
		Long: `List the machines that keep the facts of this site together. The site goes on as long
as more than half of those that vote are up. Any of them can be asked: the one that
leads answers.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				list, err := s.sites.ListMembers(ctx, &kithv1.ListMembersRequest{})
				if err != nil {
					return err
				}
				return c.printMessage(list, func() string {
					g := cli.Grid{Columns: []cli.Column{{Title: "MEMBER"}, {Title: "ADDRESS"}, {Title: "STATE"}}}
					for _, m := range list.GetMembers() {
						g.Add(m.GetName(), m.GetAddress(), memberState(m))
					}
					return g.Render(c.Width)
				})
			})
		},
	}
	cmd.AddCommand(membersAddVerb(c), membersRemoveVerb(c), membersReplaceVerb(c))
	return cmd
}

func memberState(m *kithv1.SiteMember) string {
	state := "catches up"
	switch {
	case m.GetLeads():
		state = "leads"
	case m.GetVotes():
		state = "votes"
	case m.GetRunsJobs() && !m.GetKeepsFacts():
		state = "keeps no facts"
	}
	if why := m.GetUnreached(); why != "" {
		state += ", not reached: " + why
	}
	switch {
	case m.GetAway() != "":
		state += ", should run jobs: " + m.GetAway()
	case m.GetRunsJobs():
		state += ", runs jobs"
	}
	return state
}

func membersAddVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "add NAME HOST:PORT",
		Short: "Take a machine in that waits for it",
		Long: `Take a machine in. Its kithd runs, with the site, the cluster id and the keys of the
others, with a name of its own and nothing of the site in its data folder. It gets
what the others have first, and its vote then: the command returns when it has both.
If it ends before, run it again.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.attend(cmd.Context(), func(ctx context.Context, s *site) error {
				r, err := s.sites.AddMember(ctx, &kithv1.AddMemberRequest{Name: args[0], Address: args[1]})
				if err != nil {
					return err
				}
				return c.printMessage(r, func() string { return fmt.Sprintf("%s at %s is a member of the site.\n", args[0], args[1]) })
			})
		},
	}
}

func membersRemoveVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Take a machine out",
		Long: `Take a machine out, whether it is up or not. Its name and its address are free then. Its
kithd goes on until it is stopped, and never leads again; before it is added again its
folder members must be removed.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				r, err := c.removeMember(ctx, s, args[0])
				if err != nil {
					return err
				}
				return c.printMessage(r, func() string { return args[0] + " is no member of the site any more.\n" })
			})
		},
	}
}

// removeMember takes a machine out. One that leads stops leading then, and its answer may be lost:
// the others are asked again, which changes nothing more.
func (c *client) removeMember(ctx context.Context, s *site, name string) (r *kithv1.RemoveMemberResponse, err error) {
	_, err = c.persist(ctx, func(ctx context.Context) (err error) {
		r, err = s.sites.RemoveMember(ctx, &kithv1.RemoveMemberRequest{Name: name})
		return err
	})
	return r, err
}

func membersReplaceVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "replace OLD NAME HOST:PORT",
		Short: "Take a machine in, and another one out then",
		Args:  cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.attend(cmd.Context(), func(ctx context.Context, s *site) error {
				if _, err := s.sites.AddMember(ctx, &kithv1.AddMemberRequest{Name: args[1], Address: args[2]}); err != nil {
					return err
				}
				r, err := c.removeMember(ctx, s, args[0])
				if err != nil {
					return err
				}
				return c.printMessage(r, func() string {
					return fmt.Sprintf("%s at %s is a member of the site, in place of %s.\n", args[1], args[2], args[0])
				})
			})
		},
	}
}
