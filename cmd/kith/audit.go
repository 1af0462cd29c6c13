package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/internal/pathkind"
	"kith/meta/trust"
	"kith/meta/trust/audit"
	kithv1 "kith/proto/gen/kith/v1"
)

// defaultAudit is where a site has its audit log unless its configuration says another
// data folder.
const defaultAudit = "/var/lib/kith/audit"

// auditVerb is "kith audit", what operators do with the audit log of their site.
func auditVerb(c *client) *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Read and check the audit log of a site, in its folder"}
	cmd.AddCommand(auditVerifyVerb(c), auditShowVerb(c))
	return cmd
}

// auditFolder returns the folder of the log that the arguments name: it, or the data
// folder that it is in.
func auditFolder(args []string) (string, error) {
	dir := defaultAudit
	if len(args) > 0 {
		dir = args[0]
	}
	if inner := filepath.Join(dir, "audit"); len(args) > 0 {
		if st, err := os.Stat(inner); err == nil && st.IsDir() {
			dir = inner
		}
	}
	switch st, err := os.Stat(dir); {
	case err != nil:
		return "", cli.Usagef("audit log %s: %v; name the folder audit of the site's data folder", dir, cli.Bare(err))
	case !st.IsDir():
		return "", cli.Usagef("audit log %s: it is %s; name the folder audit of the site's data folder", dir, pathkind.Of(st.Mode()))
	}
	return dir, nil
}

// headOf reads "N:SHA256".
func headOf(text string) (*audit.Head, error) {
	number, hash, ok := strings.Cut(text, ":")
	n, err := strconv.ParseUint(number, 10, 64)
	h := &audit.Head{Number: n}
	if !ok || err != nil || n == 0 || h.Hash.UnmarshalText([]byte(hash)) != nil {
		return nil, fmt.Errorf("write the number of a line and its SHA-256 as NUMBER:64 hexadecimal digits")
	}
	return h, nil
}

func auditVerifyVerb(c *client) *cobra.Command {
	head := cli.Parsed[*audit.Head]{Kind: "NUMBER:SHA256", Parse: headOf}
	var peer string
	cmd := &cobra.Command{
		Use:   "verify [DIR]",
		Short: "Look whether an audit log is whole",
		Long: `Look whether an audit log is whole: that no line was changed, removed, inserted
or moved since kithd wrote it. DIR is the folder of the log or the data folder of
the site, ` + defaultAudit + ` if none is named. It asks no site; kithd may run
meanwhile.

Lines that are missing at the very end show only against a head that was kept
elsewhere: --head takes the number and hash that an earlier run has printed, or
that "kith site show" prints at another site. With --peer DIR is a copy of the log
of another site, and is compared with what that site has told the site that is
asked, which is this one's; the log of the latter is not looked at.

Once an hour and when it stops kithd signs a head and writes it into the log. The
signatures are checked against the CA of --ca, or of the folder keys in the data
folder of the site. A CA that was kept elsewhere says more: who can write the log
can write that folder too. A site without keys signs nothing.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if peer != "" && (len(args) == 0 || head.Value != nil) {
				return cli.Usagef("audit verify --peer %s: name the copy of its log, and no --head", peer)
			}
			dir, err := auditFolder(args)
			if err != nil {
				return err
			}
			if peer != "" {
				if head.Value, err = c.toldHead(cmd.Context(), peer); err != nil {
					return err
				}
			}
			ca := "" // $KITH_CA is that of the site that is asked, and this asks none
			if f := cmd.Flags().Lookup("ca"); f != nil && f.Changed {
				ca = c.caFile
			}
			by, check, err := headCheck(dir, ca)
			if err != nil {
				return err
			}
			r, err := audit.Verify(dir, audit.VerifyOptions{Head: head.Value, Check: check})
			if err != nil {
				return cli.Refusedf("%v", err)
			}
			if err := c.Print(r, func() string { return auditText(dir, by, &r) }); err != nil {
				return err
			}
			if n := len(r.Faults) + r.More; n > 0 {
				return cli.Refusedf("audit log %s: %s", dir, cli.Plural(int64(n), "fault", "faults"))
			}
			return nil
		},
	}
	cmd.Flags().Var(&head, "head", "the log must have this line; as an earlier run has printed it")
	cmd.Flags().StringVar(&peer, "peer", "", "the log is a copy of that of `SITE`, and must have the line that it has told")
	return cmd
}

// toldHead returns what a site has told of its log; of one whose word was broken, what it
// told first.
func (c *client) toldHead(ctx context.Context, peer string) (h *audit.Head, err error) {
	err = c.ask(ctx, func(ctx context.Context, s *site) error {
		r, err := s.trust.GetTrustedSite(ctx, &kithv1.GetTrustedSiteRequest{SiteId: peer})
		if err != nil {
			return err
		}
		told := r.GetSite().GetAuditHead()
		if broken := r.GetSite().GetAuditHeadBroken(); broken != nil {
			told = broken
		}
		if told == nil {
			return cli.Refusedf("site %s has told nothing of its audit log yet", peer)
		}
		h = &audit.Head{Site: peer, Number: told.GetNumber(), Time: time.Unix(0, told.GetTimeNs())}
		copy(h.Hash[:], told.GetHash())
		return nil
	})
	return h, err
}

// headCheck returns what checks the signatures in the log of a folder, nil if there is no
// CA to check them against, and a few words for that CA.
func headCheck(dir, caFile string) (by string, check func(*audit.Head) error, err error) {
	if caFile == "" {
		keys := filepath.Join(dir, "..", "keys")
		check, err = audit.CheckedByFolder(keys)
		if errors.Is(err, trust.ErrNoKeys) {
			return "", nil, nil
		}
		if err != nil {
			return "", nil, cli.Usagef("CA of the site: %v; name another file with --ca", err)
		}
		return keys, check, nil
	}
	text, err := readBounded("--ca", caFile, 64<<10)
	if err != nil {
		return "", nil, err
	}
	b, err := trust.ParseCAs(text)
	if err != nil {
		return "", nil, cli.Usagef("--ca %s: %v; give the file ca.crt of the site", caFile, err)
	}
	check, err = audit.CheckedBy(b)
	return caFile, check, err
}

// auditText is a report for people. By is what signatures were checked against, "" if they
// were not.
func auditText(dir, by string, r *audit.Report) string {
	var b strings.Builder
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "%s\n", cli.Clean(f.String()))
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", r.More)
	}
	if r.Unfinished > 0 {
		fmt.Fprintf(&b, "%d bytes of a line follow the last one: kithd writes it just now, or will cut it off when it starts\n", r.Unfinished)
	}
	if r.HeadTooOld {
		b.WriteString("the line that --head names was removed with the oldest file; the rest is not compared with it\n")
	}
	if r.Lines == 0 {
		fmt.Fprintf(&b, "%s: no lines\n", dir)
		return b.String()
	}
	switch signed := cli.Plural(int64(r.Heads), "signed head", "signed heads"); {
	case r.Heads == 0 && by == "":
	case r.Heads == 0:
		fmt.Fprintf(&b, "no signed head to check against %s\n", by)
	case by == "":
		fmt.Fprintf(&b, "%s, not checked: no CA of the site is here; name one with --ca\n", signed)
	default:
		fmt.Fprintf(&b, "%s, checked against %s\n", signed, by)
	}
	word := "whole"
	if len(r.Faults) > 0 {
		word = "not whole"
	}
	fmt.Fprintf(&b, "%s: %s, lines %d to %d in %s\nhead %d:%v\n", dir, word, r.First, r.Last, cli.Plural(int64(r.Files), "file", "files"), r.Last, r.Hash)
	return b.String()
}

func auditShowVerb(c *client) *cobra.Command {
	since := c.timeFlag()
	var kinds, peers string
	cmd := &cobra.Command{
		Use:   "show [DIR]",
		Short: "Print lines of an audit log",
		Long: `Print lines of an audit log, the oldest first. DIR is the folder of the log or the
data folder of the site, ` + defaultAudit + ` if none is named. It asks no site
and does not check the log; "kith audit verify" does. With --output json each line
is as it stands in the log.`,
		Args: cobra.MaximumNArgs(1),
		Example: `  kith audit show --since 24h
  kith audit show --kind drain,resume,forget
  kith audit show --peer uni-b --output json /srv/kith`,
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := auditFolder(args)
			if err != nil {
				return err
			}
			wanted := func(l *audit.Line) bool {
				return !l.Time.Before(since.Value) && (kinds == "" || slices.Contains(words(kinds), l.Kind)) && (peers == "" || slices.Contains(words(peers), l.Peer))
			}
			return c.showAudit(dir, wanted)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(&since, "since", "only lines written since then: 2026-11-22, 2026-11-22T15:04, or 24h for a day ago")
	flags.StringVar(&kinds, "kind", "", "only lines of these kinds, as `KIND[,KIND...]`")
	flags.StringVar(&peers, "peer", "", "only lines about these sites, as `SITE[,SITE...]`")
	return cmd
}

// mostShownLines bounds what is printed at once: the newest lines.
const mostShownLines = 100_000

func (c *client) showAudit(dir string, wanted func(*audit.Line) bool) error {
	var lines []*audit.Line
	left := 0
	skipped, err := audit.Read(dir, func(l *audit.Line) bool {
		if wanted(l) {
			if lines = append(lines, l); len(lines) >= 2*mostShownLines {
				left += mostShownLines
				lines = slices.Clone(lines[mostShownLines:])
			}
		}
		return true
	})
	if err != nil {
		return cli.Refusedf("%v", err)
	}
	if more := len(lines) - mostShownLines; more > 0 {
		left += more
		lines = lines[more:]
	}
	if left > 0 {
		c.Note("%d older lines are left out; choose with --since, --kind or --peer", left)
	}
	if skipped > 0 {
		c.Note("%s cannot be read; kith audit verify says which", cli.Plural(int64(skipped), "line", "lines"))
	}
	if c.JSON() {
		var b strings.Builder
		for _, l := range lines {
			text, err := json.Marshal(l)
			if err != nil {
				return err
			}
			b.Write(text)
			b.WriteByte('\n')
		}
		return c.Write(b.String())
	}
	return c.Write(c.auditGrid(lines))
}

// auditGrid is the table for people.
func (c *client) auditGrid(lines []*audit.Line) string {
	g := cli.Grid{Columns: []cli.Column{
		{Title: "N", Right: true}, {Title: "TIME"}, {Title: "KIND"}, {Title: "TIMES", Right: true}, {Title: "PEER"}, {Title: "FROM", Spare: 1},
		{Title: "USER"}, {Title: "JOB"}, {Title: "RULE", Spare: 2}, {Title: "TEXT", Elastic: true},
	}}
	for _, l := range lines {
		times := cli.Nothing
		if l.Count > 0 {
			times = strconv.FormatUint(l.Count, 10)
		}
		text := l.Text
		if l.Head != nil {
			text = fmt.Sprintf("%d:%v", l.Head.Number, l.Head.Hash)
		}
		g.Add(strconv.FormatUint(l.Number, 10), l.Time.In(c.Zone).Format(time.DateTime), l.Kind, times, orDefault(l.Peer, cli.Nothing),
			orDefault(l.From, cli.Nothing), orDefault(l.User, cli.Nothing), orDefault(l.Job, cli.Nothing), orDefault(l.Rule, cli.Nothing), text)
	}
	return g.Render(c.Width)
}
