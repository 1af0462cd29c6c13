package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manPages is what "help man --output json" prints.
type manPages struct {
	Files []string `json:"files"`
}

// writeMan writes a manual page for the program and for each of its commands
// into a folder, which it makes if it is missing.
func (p *Program) writeMan(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // Manual pages are for all users.
		return Refusedf("help man %s: %v", dir, Bare(err))
	}
	var pages manPages
	err := eachPage(root, func(cmd *cobra.Command) error {
		name := filepath.Join(dir, pageName(cmd)+"."+manSection(root))
		pages.Files = append(pages.Files, name)
		if err := os.WriteFile(name, []byte(manPage(cmd)), 0o644); err != nil { //nolint:gosec // Likewise.
			return Refusedf("help man %s: %v", name, Bare(err))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.Print(pages, func() string { return strings.Join(pages.Files, "\n") + "\n" })
}

// eachPage calls visit for every command that has a manual page.
func eachPage(cmd *cobra.Command, visit func(*cobra.Command) error) error {
	if err := visit(cmd); err != nil {
		return err
	}
	for _, below := range cmd.Commands() {
		if below.Hidden || !below.Runnable() || below.Name() == "help" {
			continue
		}
		if err := eachPage(below, visit); err != nil {
			return err
		}
	}
	return nil
}

// pageName is what "man" is asked for: "kith-site-forget".
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manSection is 8 for a daemon, whose name ends with d by custom, else 1.
func manSection(root *cobra.Command) string {
	if strings.HasSuffix(root.Name(), "d") {
		return "8"
	}
	return "1"
}

// manPage is the manual page of a command, in the macros of man(7). It has no
// date, so that the same program writes the same page again.
func manPage(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	root := cmd.Root()
	var b strings.Builder
	fmt.Fprintf(&b, ".TH \"%s\" \"%s\" \"\" \"%s\" \"Kith\"\n",
		roffText(strings.ToUpper(pageName(cmd))), manSection(root), roffText(root.Name()+" "+thisBuild().Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roffText(pageName(cmd)), roffText(cmd.Short))
	b.WriteString(".SH SYNOPSIS\n.nf\n" + roffLines(cmd.UseLine()) + ".fi\n.SH DESCRIPTION\n")
	roffParagraphs(&b, orElse(cmd.Long, cmd.Short+"."))
	if subs := pagesBelow(cmd); len(subs) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range subs {
			fmt.Fprintf(&b, ".TP\n.BR %s (%s)\n%s\n", roffText(pageName(sub)), manSection(root), roffLine(sub.Short))
		}
	}
	roffFlags(&b, "OPTIONS", cmd.LocalFlags())
	roffFlags(&b, "OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n.nf\n" + roffLines(cmd.Example) + ".fi\n")
	}
	for _, topic := range root.Commands() {
		if cmd == root && topic.IsAdditionalHelpTopicCommand() && topic.Name() == "exit-codes" {
			b.WriteString(".SH EXIT STATUS\n")
			roffParagraphs(&b, topic.Long)
		}
	}
	if cmd != root {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (%s)\n", roffText(pageName(cmd.Parent())), manSection(root))
	}
	return b.String()
}

// pagesBelow returns the commands right below one that have pages.
func pagesBelow(cmd *cobra.Command) []*cobra.Command {
	var list []*cobra.Command
	for _, below := range cmd.Commands() {
		if !below.Hidden && below.Runnable() && below.Name() != "help" {
			list = append(list, below)
		}
	}
	return list
}

// roffParagraphs writes a help text: paragraphs are filled, those with a line
// that is indented stay as they are.
func roffParagraphs(b *strings.Builder, text string) {
	for part := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		part = strings.Trim(part, "\n")
		b.WriteString(".PP\n")
		if strings.HasPrefix(part, " ") || strings.Contains(part, "\n ") {
			b.WriteString(".nf\n" + roffLines(part) + ".fi\n")
		} else {
			b.WriteString(roffLines(part))
		}
	}
}

// roffFlags writes a section with the flags that are not hidden, if there are.
func roffFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	headed := false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if !headed {
			fmt.Fprintf(b, ".SH %q\n", title)
			headed = true
		}
		value, usage := pflag.UnquoteUsage(f)
		name := `\fB` + roffText("--"+f.Name) + `\fR`
		if f.Shorthand != "" {
			name = `\fB` + roffText("-"+f.Shorthand) + `\fR, ` + name
		}
		if value != "" {
			name += ` \fI` + roffText(value) + `\fR`
		}
		switch f.DefValue {
		case "", "false", "0", "0s", "[]":
		default:
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, ".TP\n%s\n%s\n", name, roffLine(usage))
	})
}

// roffLines escapes lines of text.
func roffLines(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString(roffLine(line) + "\n")
	}
	return b.String()
}

// roffLine escapes one line, also at its beginning, where . and ' begin a
// request and a blank line breaks.
func roffLine(line string) string {
	line = roffText(line)
	if line == "" || strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}

// roffText escapes what means something inside a line.
func roffText(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
