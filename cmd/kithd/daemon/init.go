package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kith/cmd/kithd/config"
	"kith/internal/cli"
	"kith/internal/job"
	"kith/meta/trust"
)

// newSite is what "kithd init" is asked for.
type newSite struct {
	site, data, listen, advertise string
	offline                       bool
	config                        string // where the configuration goes
}

// madeSite is what "kithd init --output json" prints.
type madeSite struct {
	Site        string    `json:"site"`
	Config      string    `json:"config"`
	Keys        string    `json:"keys"`
	Fingerprint string    `json:"fingerprint"`
	CAUntil     time.Time `json:"ca_until"`
	LeafUntil   time.Time `json:"leaf_until"`
	Socket      string    `json:"socket"`
	// CAKey is where the key of the CA is that the operator keeps; "" if the site has it.
	CAKey string `json:"ca_key,omitempty"`
}

// initVerb is "kithd init".
func initVerb(p *cli.Program, path *string) *cobra.Command {
	n, asRoot := newSite{}, false
	cmd := &cobra.Command{
		Use: "init", Short: "Make the keys and the configuration of a new site", Args: cobra.NoArgs,
		Long: "init makes a certificate authority and a certificate for the site, in the folder keys of its data folder,\n" +
			"and a configuration that runs. It replaces nothing. Run it as the user that runs kithd.",
		RunE: func(*cobra.Command, []string) error {
			if err := mayRun(os.Geteuid(), asRoot, os.Getenv(asRootVariable)); err != nil {
				return err
			}
			n.config = *path
			made, err := n.make(time.Now())
			if err != nil {
				return err
			}
			return p.Print(made, made.text)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	std := config.Default()
	flags.StringVar(&n.site, "site", "", "`NAME` of the site among the others; it never changes")
	flags.StringVar(&n.data, "data", std.Data, "`DIR` for everything the site keeps")
	flags.StringVar(&n.listen, "listen", std.Listen.Address, "`HOST:PORT` at which users and other sites reach it")
	flags.StringVar(&n.advertise, "advertise", "", "`HOST:PORT` under which other sites reach it, or none: it only dials out (default as --listen, if that is one address)")
	flags.BoolVar(&n.offline, "ca-offline", false, "keep the key of the CA elsewhere: certificates live 90 days and kithd renew makes the next")
	flags.BoolVar(&asRoot, "as-root", false, "make it for a kithd that runs as root")
	return cmd
}

// make makes the site. When it fails nothing of it is left but empty folders.
func (n newSite) make(now time.Time) (madeSite, error) {
	text, cfg, err := n.configuration()
	if err != nil {
		return madeSite{}, err
	}
	if err := closeFolder(cfg.Data, slog.New(slog.DiscardHandler)); errors.Is(err, fs.ErrPermission) {
		return madeSite{}, fmt.Errorf("%w; name another one with --data, or run this as a user who may make it", err)
	} else if err != nil {
		return madeSite{}, err
	}
	o := trust.Options{CAOffline: n.offline}
	if n.offline {
		o.CAKeyPath = filepath.Join(cfg.Data, cfg.Site+"-ca.key")
	}
	if err := os.MkdirAll(filepath.Dir(n.config), 0o755); err != nil { //nolint:gosec // the configuration holds no secret
		return madeSite{}, fmt.Errorf("configuration: %w; name another file with --config", err)
	}
	// The file is there first, so that its name is taken before keys are made.
	f, err := os.OpenFile(n.config, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // likewise
	if errors.Is(err, fs.ErrExist) {
		return madeSite{}, fmt.Errorf("%s is there already and is not replaced: name another file with --config, or remove it", n.config)
	}
	if err != nil {
		return madeSite{}, fmt.Errorf("configuration: %w; name another file with --config", err)
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Close())
	var keys *trust.Keys
	if err == nil {
		keys, err = trust.Init(cfg.KeysPath(), job.SiteID(cfg.Site), o, now)
	}
	if err != nil {
		return madeSite{}, errors.Join(err, os.Remove(n.config))
	}
	ends := keys.Expiries(now)
	return madeSite{
		Site: cfg.Site, Config: n.config, Keys: cfg.KeysPath(), Fingerprint: trust.Fingerprint(keys.CA()),
		LeafUntil: ends[0].At, CAUntil: ends[1].At, Socket: cfg.SocketPath(), CAKey: o.CAKeyPath,
	}, nil
}

// configuration returns the text of the file and what it says.
func (n newSite) configuration() (string, config.Config, error) {
	if n.site == "" {
		return "", config.Config{}, cli.Usagef("--site is missing: name the site, 1 to 32 of a-z, 0-9 and -")
	}
	data, err := filepath.Abs(n.data)
	if err != nil {
		return "", config.Config{}, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Site %s of a Kith federation. The keys and their defaults: %s\n", n.site, config.Manual)
	fmt.Fprintf(&b, "site = %s\ndata = %s\n\n[listen]\naddress = %s\n", strconv.Quote(n.site), strconv.Quote(data), strconv.Quote(n.listen))
	host, _, err := net.SplitHostPort(n.listen)
	switch {
	case n.advertise != "":
		fmt.Fprintf(&b, "advertise = %s\n", strconv.Quote(n.advertise))
	case err == nil && (host == "" || net.ParseIP(host).IsUnspecified()):
		b.WriteString("advertise = \"none\" # or the host:port under which other sites reach this one\n")
	}
	cfg, err := config.Parse(b.String())
	if err != nil {
		return "", config.Config{}, badFlags(err)
	}
	if len(cfg.SocketPath()) > 107 {
		return "", config.Config{}, cli.Usagef("--data %s: the path is too long for a socket in it: choose a shorter one", n.data)
	}
	return b.String(), cfg, nil
}

// badFlags has a line for each mistake in a configuration that was made of flags: there is no
// file whose lines could be named.
func badFlags(err error) *cli.Failure {
	f := &cli.Failure{Code: cli.ExitUsage}
	for _, m := range mistakesIn(err) {
		key, flag := m.Key, m.Key[strings.LastIndexByte(m.Key, '.')+1:]
		if flag == "address" {
			flag = "listen"
		}
		f.Problems = append(f.Problems, strings.Replace(m.Says, key+" = ", "--"+flag+" ", 1))
	}
	return f
}

// mistakesIn returns the mistakes of a configuration, or err as the only one.
func mistakesIn(err error) config.Mistakes {
	if mistakes, ok := errors.AsType[config.Mistakes](err); ok {
		return mistakes
	}
	return config.Mistakes{{Says: err.Error()}}
}

func (m madeSite) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "site           %s\nconfiguration  %s\nkeys           %s\n", m.Site, m.Config, m.Keys)
	fmt.Fprintf(&b, "fingerprint    %s\n", m.Fingerprint)
	day := func(t time.Time) string { return t.Local().Format("2006-01-02") }
	if m.CAKey == "" {
		fmt.Fprintf(&b, "valid          CA until %s; certificate until %s, renewed by the site itself\n", day(m.CAUntil), day(m.LeafUntil))
	} else {
		fmt.Fprintf(&b, "valid          CA until %s; certificate until %s, not renewed by the site itself\n", day(m.CAUntil), day(m.LeafUntil))
		fmt.Fprintf(&b, "key of the CA  %s\n               move it away from this machine; before %s bring it back for:\n"+
			"               kithd renew --config %s --ca-key FILE\n", m.CAKey, day(m.LeafUntil), m.Config)
	}
	fmt.Fprintf(&b, "\nStart it:      kithd --config %s\nAsk it:        kith --site unix:%s sites\n", m.Config, m.Socket)
	b.WriteString("               from another account than that of kithd, under which jobs run\n")
	return b.String()
}

// mostAbove bounds what an operator can step over at once: a number that is too large cannot
// be taken back.
const mostAbove = 1_000_000_000

// renewVerb is "kithd renew".
func renewVerb(p *cli.Program, path *string) *cobra.Command {
	caKey, nextCAKey, void, tokenKey, above := "", "", false, false, uint64(0)
	cmd := &cobra.Command{
		Use: "renew", Short: "Make the next certificate, or CA, of a site whose CA key is kept elsewhere", Args: cobra.NoArgs,
		Long: "renew makes a certificate of 90 days with the key of the CA from a file. A running kithd takes it up at SIGHUP.\n" +
			"A site that has its CA's key renews its certificate by itself; without --ca-key renew makes one for such a site\n" +
			"whose leaf.pem is damaged. With --void the certificates of before are void, as after a theft: other sites\n" +
			"refuse them once they have heard of it. With --next-ca-key renew makes the next CA, too, and writes its key to that\n" +
			"file, which is to be kept elsewhere like the other: both CAs are valid until all other sites have confirmed the\n" +
			"next one, or for 30 days, and then that alone, without a further command. With --token-key renew makes a new key for tokens of users, and nothing\n" +
			"else: those of before are void once kithd has been started again.\n" +
			"Other sites take no bundle that is earlier than the one they know. Where this site knows no more which that is, as\n" +
			"its folder keys, or all its data, came back from a copy, --void --above NUMBER steps over it: the number is in the log\n" +
			"of this site, and in the row \"bundle\" of kith site show at the others. A site that has its CA's key needs no --ca-key for that.",
		RunE: func(*cobra.Command, []string) error {
			switch {
			case nextCAKey != "" && caKey == "":
				return cli.Usagef("--next-ca-key needs --ca-key FILE; a site that has its CA's key does this by kith site rotate --ca")
			case above > 0 && !void:
				return cli.Usagef("--above needs --void: the certificates of before may be void at other sites")
			case above > mostAbove:
				return cli.Usagef("--above %d: give the number of the latest bundle, at most %d", above, uint64(mostAbove))
			case tokenKey && (void || caKey != "" || nextCAKey != "" || above != 0):
				return cli.Usagef("--token-key makes a new key for tokens and nothing else; give the other flags to a kithd renew of their own")
			case void && caKey == "" && above == 0:
				return cli.Usagef("--void needs --ca-key FILE; a site that has its CA's key does this by kith site rotate --now")
			}
			cfg, err := config.Load(*path)
			if err != nil {
				return badConfig(err)
			}
			now := time.Now()
			keys, err := trust.OpenToRenew(cfg.KeysPath(), job.SiteID(cfg.Site))
			if err != nil {
				return err
			}
			if tokenKey {
				if err := keys.RenewTokenKey(); err != nil {
					return err
				}
				return p.Print(struct {
					Site string `json:"site"`
				}{cfg.Site}, func() string {
					return fmt.Sprintf("new key for tokens of site %s\nStart kithd again: tokens of before are void then\n", cfg.Site)
				})
			}
			keys.StepOver(above)
			renew := keys.RenewWith
			switch {
			case nextCAKey != "":
				renew = func(caKey string, now time.Time) error { return keys.ReplaceWith(caKey, nextCAKey, void, now) }
			case void:
				renew = keys.VoidWith
			}
			if err := renew(caKey, now); err != nil {
				if errors.Is(err, trust.ErrOffline) {
					return cli.Usagef("--ca-key is missing: name the file with the key of the CA")
				}
				return err
			}
			until, fingerprint := keys.Leaf().Leaf.NotAfter, ""
			if next, ok := keys.NextCA(); ok {
				fingerprint = trust.Fingerprint(next)
			}
			return p.Print(struct {
				Site      string    `json:"site"`
				LeafUntil time.Time `json:"leaf_until"`
				// NextCA is the fingerprint of a CA that is under way.
				NextCA string `json:"next_ca,omitempty"`
			}{cfg.Site, until, fingerprint}, func() string {
				text := fmt.Sprintf("certificate of site %s until %s\n", cfg.Site, until.Local().Format("2006-01-02"))
				if nextCAKey != "" {
					text += fmt.Sprintf("next CA        %s\nits key        %s\n               move it away from this machine, and keep the key of before until the log says rotate-ca-end\n", fingerprint, nextCAKey)
				}
				return text + "A running kithd takes it up at SIGHUP: systemctl reload kithd\n"
			})
		},
	}
	cmd.Flags().StringVar(&caKey, "ca-key", "", "`FILE` with the key of the CA")
	cmd.Flags().StringVar(&nextCAKey, "next-ca-key", "", "make the next CA and write its key to `FILE`")
	cmd.Flags().BoolVar(&tokenKey, "token-key", false, "make a new key for tokens instead")
	cmd.Flags().Uint64Var(&above, "above", 0, "make a bundle with a larger `NUMBER`, after a copy was put back")
	cmd.Flags().BoolVar(&void, "void", false, "void the certificates of before")
	return cmd
}
