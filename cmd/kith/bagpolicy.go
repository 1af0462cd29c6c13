package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/meta/bags"
	kithv1 "kith/proto/gen/kith/v1"
)

// maxPolicyFile is how large a file of policies may be.
const maxPolicyFile = 64 << 10

// bagPolicyVerb is "kith bag policy".
func bagPolicyVerb(c *client) *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "Say where tasks of a bag run, in which order and how many at once",
		Long: `Policies are expressions that the bag's own site evaluates whenever a host asks
for tasks. A file of them has a line for each, in TOML:

  requirements = "!bag.tail || host.error_rate < 0.1"
  rank = "host.recent_done"

docs/policies.md explains them and has examples.`,
	}
	cmd.AddCommand(policyCheckVerb(c), policySetVerb(c), policyVarsVerb(c))
	return cmd
}

// readPolicies reads a file of policies, in TOML only. One in JSON is an error: it has
// neither comments nor texts over several lines, both of which policies want, and with
// two formats an error could not name the line that is wrong without a guess at which.
func readPolicies(path string) (*kithv1.BagPolicies, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, cli.Usagef("--policy %s: %v", path, cli.Bare(err))
	}
	defer f.Close() //nolint:errcheck // Only read from.
	data, err := io.ReadAll(io.LimitReader(f, maxPolicyFile+1))
	switch {
	case err != nil:
		return nil, cli.Usagef("--policy %s: %v", path, cli.Bare(err))
	case len(data) > maxPolicyFile:
		return nil, cli.Usagef("--policy %s: has more than %d bytes", path, maxPolicyFile)
	}
	var texts map[string]any
	if _, err := toml.Decode(string(data), &texts); err != nil {
		return nil, cli.Usagef("--policy %s: %v; write a policy as NAME = \"TEXT\"", path, err)
	}
	p := &kithv1.BagPolicies{}
	fields := map[string]*string{
		"requirements": &p.Requirements, "rank": &p.Rank, "concurrency": &p.Concurrency, "deadline": &p.Deadline, "replicate": &p.Replicate, "sites": &p.Sites,
	}
	names := make([]string, 0, len(texts))
	for name := range texts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		field := fields[name]
		if field == nil {
			return nil, cli.Usagef("--policy %s: %q is no policy; there are %s", path, name, policyNames())
		}
		switch text := texts[name].(type) {
		case string:
			*field = text
		case bool, int64, float64:
			*field = fmt.Sprint(text)
		default:
			return nil, cli.Usagef("--policy %s: %s: write it as %s = \"TEXT\"", path, name, name)
		}
	}
	return p, nil
}

// policyNames are the names of all policies.
func policyNames() string {
	var names []string
	for _, d := range bags.Texts {
		names = append(names, d.Name)
	}
	return strings.Join(names, ", ")
}

// policyCheckVerb is "kith bag policy check".
func policyCheckVerb(c *client) *cobra.Command {
	var bag string
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Tell what policies would give at each known site, and submit nothing",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("check: give the one file of policies")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := readPolicies(args[0])
			if err != nil {
				return err
			}
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				r, err := s.bags.CheckPolicies(ctx, &kithv1.CheckPoliciesRequest{Policies: p, BagId: bag})
				if err != nil {
					return err
				}
				return c.printMessage(r, func() string {
					if table := policyTable(r); table != nil {
						return table.Render(c.Width) + leftOutText(r)
					}
					return "The file states no policy.\n"
				})
			})
		},
	}
	cmd.Flags().StringVar(&bag, "bag", "", "try them on this `BAG` (default one that begins, of whose tasks nothing is known)")
	return cmd
}

// policyTable shows what policies give, nil if there is none.
func policyTable(r *kithv1.CheckPoliciesResponse) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{{Title: "HOST"}, {Title: "POLICY"}, {Title: "GIVES"}, {Title: "DECIDED BY"}}}
	any := false
	for _, h := range r.GetHosts() {
		name := h.GetSiteId()
		if h.GetNode() != "" {
			name += "/" + h.GetNode()
		}
		for _, v := range h.GetValues() {
			any = true
			g.Add(cli.Clean(name), v.GetPolicy(), cli.Clean(v.GetValue()), orDefault(cli.Clean(v.GetPart()), cli.Nothing))
			name = ""
		}
	}
	if !any {
		return nil
	}
	return g
}

// policySetVerb is "kith bag policy set".
func policySetVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "set BAG FILE",
		Short: "Replace the policies of a bag; tasks that sites have stay there",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usagef("set: give the bag and the file of policies")
			}
			return oneBag(cmd, args[:1])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := readPolicies(args[1])
			if err != nil {
				return err
			}
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				b, err := c.getBag(ctx, s, args[0])
				if err != nil {
					return err
				}
				p.Etag = b.GetPolicies().GetEtag()
				r, err := s.bags.SetBagPolicies(ctx, &kithv1.SetBagPoliciesRequest{BagId: args[0], Policies: p})
				if err != nil {
					return err
				}
				return c.printMessage(r, func() string { return "The next host that asks meets the new policies of " + args[0] + ".\n" })
			})
		},
	}
}

// policyVarsVerb is "kith bag policy vars".
func policyVarsVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "vars",
		Short: "List what policies may read",
		Args:  cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			g := &cli.Grid{Columns: []cli.Column{{Title: "VARIABLE"}, {Title: "TYPE"}, {Title: "WHAT IT IS"}}}
			for _, v := range bags.Vars {
				g.Add(v.Name, v.Type.String(), v.Sentence)
			}
			return c.Write(g.Render(c.Width))
		},
	}
}

// statedPolicies are the policies of a bag, a line for each, as a file has them.
func statedPolicies(p *kithv1.BagPolicies) (lines []string) {
	for _, stated := range []struct{ name, text string }{
		{"requirements", p.GetRequirements()}, {"rank", p.GetRank()}, {"concurrency", p.GetConcurrency()},
		{"deadline", p.GetDeadline()}, {"replicate", p.GetReplicate()}, {"sites", p.GetSites()},
	} {
		if stated.text != "" {
			lines = append(lines, stated.name+" = "+stated.text)
		}
	}
	return lines
}

// printWhy tells why a bag is where it is, and what its policies give for each host. A site
// that does not say what they give is no reason to be silent about the bag.
func (c *client) printWhy(ctx context.Context, s *site, b *kithv1.Bag) error {
	bag := &kithv1.GetBagResponse{Bag: b}
	text := func() string { return c.bagWhy(b) + c.whyHeld(ctx, s) }
	if len(statedPolicies(b.GetPolicies())) == 0 {
		return c.printMessage(bag, text)
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	given, err := s.bags.CheckPolicies(limited, &kithv1.CheckPoliciesRequest{BagId: b.GetId()})
	switch {
	case c.JSON() && err != nil:
		return err
	case c.JSON():
		return c.printTogether(bag, given)
	case err != nil:
		return c.Write(text() + cli.Clean(fmt.Sprintf("What its policies give is not known: %v", c.explain(err))) + "\n")
	}
	return c.Write(text() + c.whyPolicies(given))
}

// whyPolicies says what the policies of a bag give for each host.
func (c *client) whyPolicies(r *kithv1.CheckPoliciesResponse) (text string) {
	hosts := r.GetHosts()
	asked := slices.ContainsFunc(hosts, (*kithv1.HostPolicies).GetAsked)
	switch {
	case !slices.ContainsFunc(hosts, (*kithv1.HostPolicies).GetOffered):
		text = "By its policies no known site is offered its tasks.\n"
	case !asked:
		text = "No host has asked for its tasks since kithd started; what is known only then is UNDEFINED here.\n"
	case !slices.ContainsFunc(hosts, func(h *kithv1.HostPolicies) bool { return h.GetAsked() && mayRun(h) }):
		text = "By its policies no host that has asked gets tasks of it.\n"
	}
	if table := policyTable(r); table != nil {
		text += "\n" + table.Render(c.Width) + leftOutText(r)
	}
	return text
}

// leftOutText says how many hosts an answer leaves out.
func leftOutText(r *kithv1.CheckPoliciesResponse) string {
	if n := r.GetHostsLeftOut(); n > 0 {
		return cli.Plural(int64(n), "more host is", "more hosts are") + " not shown.\n"
	}
	return ""
}

// mayRun reports whether policies let a host run tasks. A concurrency below 1 lets it have none.
func mayRun(h *kithv1.HostPolicies) bool {
	for _, v := range h.GetValues() {
		switch v.GetPolicy() {
		case bags.Requirements.String():
			if v.GetValue() != "true" {
				return false
			}
		case bags.Concurrency.String():
			if most, err := strconv.ParseFloat(v.GetValue(), 64); err == nil && most < 1 {
				return false
			}
		}
	}
	return h.GetOffered()
}
