package config

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/meta"
	"kith/sitesched"
)

const minimal = `site = "alpha"` + "\n"

func TestDefaultsAreGood(t *testing.T) {
	c, err := Parse(minimal)
	if err != nil {
		t.Fatal(err)
	}
	if c.Placement.Copies != 3 || c.Scheduler.Queues != sitesched.DualBackfill || c.Listen.Address != "127.0.0.1:7410" {
		t.Errorf("defaults %+v", c)
	}
	if want := meta.Default(); c.Placement != want.Placement || c.Limits != want.Limits || c.Timing.Timing != want.Timing || c.Bags != want.Bags || c.MetaConfig().Bags != want.Bags {
		t.Errorf("the engine's defaults are %+v, those of the file %+v %+v %+v %+v", want, c.Placement, c.Limits, c.Timing.Timing, c.Bags)
	}
}

func TestConfigUnits(t *testing.T) {
	c, err := Parse(minimal + `
[executor]
grace = "90s"
max_output = "1.5GiB"
[files]
quota = "10GB"
keep_free = 4096
`)
	if err != nil {
		t.Fatal(err)
	}
	if c.Executor.Grace != 90*time.Second || c.Executor.MaxOutputBytes != 3<<29 || c.Files.QuotaBytes != 1e10 || c.Files.KeepFreeBytes != 4096 {
		t.Errorf("units: %+v %+v", c.Executor, c.Files)
	}
}

// Each mistake is told with line, key, value and remedy, as one sentence.
func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":         {"[scheduler]\nprocesors = 4", `line 3: key scheduler.procesors is not known; did you mean "scheduler.processors"?`},
		"swapped letters":     {`siet = "beta"`, `line 2: key siet is not known; did you mean "site"?`},
		"unknown table":       {"[nonsense]\nx = 1", "line 2: key nonsense is not known; docs/operations.md lists the keys"},
		"misspelt table":      {"[schedular]\nprocessors = 1", `line 2: key schedular is not known; did you mean "scheduler"?`},
		"unknown key of peer": {"[[peers]]\nsite = \"b\"\nadress = \"b:1\"", `line 4: key peers.adress is not known; did you mean "peers.address"?`},
		"not toml":            {"data = ", "line 2: "},
		"key twice":           {`site = "beta"`, "line 2: "},

		"text for a number":     {"[scheduler]\nprocessors = \"four\"", `line 3: scheduler.processors = "four": give a whole number, without quotes`},
		"part of a processor":   {"[scheduler]\nprocessors = 1.5", `line 3: scheduler.processors = 1.5: give a whole number, without quotes`},
		"number far too large":  {"[scheduler]\nprocessors = 99999999999", `line 3: scheduler.processors = 99999999999: give a whole number`},
		"text for a bool":       {"[executor]\npin = \"no\"", `line 3: executor.pin = "no": give true or false, without quotes`},
		"number for a text":     {"[log]\nlevel = 3", `line 3: log.level = 3: give "debug", "info", "warn" or "error"`},
		"number for a duration": {"[timing]\nclaim = 5", `line 3: timing.claim = 5: give a duration in quotes, such as "5s" or "1h30m"`},
		"text for a fraction":   {"[scheduler]\nspeed = \"fast\"", `line 3: scheduler.speed = "fast": give a number, without quotes`},
		"text for a list":       {"[executor]\ndirectories = \"/scratch\"", `line 3: executor.directories = "/scratch": give a list of texts, such as ["one", "two"]`},
		"value for a table":     {`log = "debug"`, `line 2: log = "debug": it is a table; write [log] and its keys below`},
		"peers as a table":      {"[peers]\nsite = \"b\"", "line 2: peers: write each peer as [[peers]], with site and address below"},
		"peers as texts":        {`peers = ["b", "c"]`, "line 2: peers: write each peer as [[peers]], with site and address below"},
		"table for a value":     {"[data]\nx = 1", "line 2: data = a table: give text in quotes"},
		"bad duration":          {"[timing]\nclaim = \"5 apples\"", `line 3: timing.claim = "5 apples": give a duration in quotes, such as "5s"`},
		"bad size":              {"[files]\nquota = \"many\"", `line 3: files.quota = "many": give a size such as 1048576, "512MiB" or "10GB"`},

		"bad site":             {"[[peers]]\nsite = \"Beta Site\"", `line 3: peers[0].site = "Beta Site": give 1 to 32 of a-z, 0-9 and -`},
		"relative data":        {`data = "here"`, `line 2: data = "here": give an absolute path`},
		"bad backfill":         {"[scheduler]\nbackfill = \"magic\"", `line 3: scheduler.backfill = "magic": give "none", "easy", "conservative" or "conservative-replan"`},
		"bad queues":           {"[scheduler]\nqueues = \"dual\"", `line 3: scheduler.queues = "dual": give "single", "dual-strict", "dual-backfill" or "dual-preempt"`},
		"bad guarantee":        {"[scheduler]\nguarantee = \"some\"", `line 3: scheduler.guarantee = "some": give "head" or "all"`},
		"negative processors":  {"[scheduler]\nprocessors = -2", "line 3: scheduler.processors = -2: give 1 to 16777216, or 0 for as many as the machine has"},
		"negative memory":      {"[scheduler]\nmemory = -2", "line 3: scheduler.memory = -2: give a size"},
		"no speed":             {"[scheduler]\nspeed = 0", "line 3: scheduler.speed = 0.0: give a number from 0.001 to 1000, 1 for the reference"},
		"bad scheme":           {"[placement]\nscheme = \"best\"", `line 3: placement.scheme = "best": give "independent", "distributed"`},
		"bad rank":             {"[placement]\nrank = \"luck\"", `line 3: placement.rank = "luck": give "work", "procs", "start", "completion" or "forecast"`},
		"rank of a scheme":     {"[placement]\nscheme = \"mct\"\nrank = \"work\"", `line 4: placement.rank = "work": scheme mct ranks by completion; leave the rank out`},
		"no copies":            {"[placement]\ncopies = 0", "line 3: placement.copies = 0: give 1 to 64"},
		"copies beyond":        {"[placement]\ncopies = 99", "line 3: placement.copies = 99: give 1 to 64"},
		"weight":               {"[placement]\nweight = -1", "line 3: placement.weight = -1: give 0.01 to 100, or 0 for none"},
		"rank without":         {"[forecast]\nenabled = false\n[placement]\nrank = \"forecast\"", "line 5: placement.rank = \"forecast\": set forecast.enabled, or choose completion"},
		"risk":                 {"[placement]\nrank = \"forecast\"\nrisk = 11", "line 4: placement.risk = 11.0: give 0 to 10"},
		"risk of what":         {"[placement]\nrisk = 1.0", "line 3: placement.risk = 1: rank work knows no deviations"},
		"adaptive":             {"[placement]\nadaptive = true", "line 3: placement.adaptive = true: rank work promises no time"},
		"mode of harm":         {"[no_harm]\nmode = \"none\"", `line 3: no_harm.mode = "none": give "promise", "bounded" or "invisible"`},
		"promise and preempt":  {"[scheduler]\nqueues = \"dual-preempt\"\n[no_harm]\nmode = \"promise\"", `line 5: no_harm.mode = "promise": with scheduler.queues = "dual-preempt" guests leave as soon as`},
		"bounded and preempt":  {"[scheduler]\nqueues = \"dual-preempt\"\n[no_harm]\nmode = \"bounded\"", `line 5: no_harm.mode = "bounded": works with scheduler.queues = "dual-backfill" only, and they are "dual-preempt": leave one of the two out`},
		"bounded and single":   {"[scheduler]\nqueues = \"single\"\n[no_harm]\nmode = \"bounded\"", `line 5: no_harm.mode = "bounded": works with scheduler.queues = "dual-backfill" only`},
		"invisible and seen":   {"[scheduler]\nqueues = \"dual-backfill\"\n[no_harm]\nmode = \"invisible\"", `line 5: no_harm.mode = "invisible": works with scheduler.queues = "dual-preempt" only`},
		"bound below grace":    {"[no_harm]\nmode = \"bounded\"\nbound = \"1m\"", `line 4: no_harm.bound = "1m": give at least checkpoint.max_grace`},
		"keep free too much":   {"[scheduler]\nprocessors = 4\n[no_harm]\nkeep_free = 5", "line 5: no_harm.keep_free = 5: the site has 4 processors: give at most as many"},
		"keep free and queues": {"[scheduler]\nqueues = \"single\"\n[no_harm]\nkeep_free = 1", `line 5: no_harm.keep_free = 1: works with scheduler.queues = "dual-backfill" or "dual-preempt" only: leave it out, or change the queues`},
		"guests before time":   {"[no_harm]\nguest_walltime = \"-1h\"", `line 3: no_harm.guest_walltime = `},
		"owner measured late":  {"[owner]\ninterval = \"2m\"", `line 3: owner.interval = "2m": give 1s to 1m`},
		"sharing as a text":    {"[owner]\nsharing = \"yes\"", `line 3: owner.sharing = "yes": give true or false, without quotes`},
		"no limit":             {"[limits]\njobs = 0", "line 3: limits.jobs = 0: give a positive value"},
		"closed jobs":          {"[limits]\nclosed_jobs = -1", "line 3: limits.closed_jobs = -1: give at least 0"},
		"zero timeout":         {"[timing]\nclaim = \"0s\"", `line 3: timing.claim = "0s": give a positive duration`},
		"zero vanish":          {"[timing]\nvanish = \"0s\"", `line 3: timing.vanish = "0s": give a positive value`},
		"clock rate":           {"[timing]\nclock_rate = 2", "line 3: timing.clock_rate = 2: give a fraction from 0 to 0.5"},
		"lease":                {"[timing]\nlease = \"100000h\"", `line 3: timing.lease = "100000h": give at most`},
		"no heartbeat":         {"[timing]\nheartbeat = \"0s\"", `line 3: timing.heartbeat = "0s": give a positive duration`},
		"negative grace":       {"[executor]\ngrace = \"-1s\"", `line 3: executor.grace = "-1s": give a duration that is not negative`},
		"no output":            {"[executor]\nmax_output = 0", "line 3: executor.max_output = 0: give a positive size"},
		"negative quota":       {"[files]\nquota = -1", "line 3: files.quota = -1: give a positive size, or 0 for no bound"},
		"relative directories": {"[executor]\ndirectories = [\n  \"/a\",\n  \"scratch\"]", `line 3: executor.directories = ["/a", "scratch"]: give absolute paths, "scratch" is none`},
		"relative roots":       {"[files]\ninput_roots = [\"x\"]", `line 3: files.input_roots = ["x"]: give absolute paths`},
		"bad level":            {"[log]\nlevel = \"loud\"", `line 3: log.level = "loud": give "debug", "info", "warn" or "error"`},
		"bad format":           {"[log]\nformat = \"xml\"", `line 3: log.format = "xml": give "json" or "text"`},

		"open to the world":                       {"[listen]\naddress = \"10.0.0.1:7410\"\ninsecure_loopback = true", `line 3: listen.address = "10.0.0.1:7410" is not loopback, and listen.insecure_loopback serves anyone who reaches it: give a loopback address`},
		"peer elsewhere":                          {"[listen]\ninsecure_loopback = true\n[[peers]]\nsite = \"b\"\naddress = \"10.0.0.2:7410\"", `line 6: peers[0].address = "10.0.0.2:7410" is not loopback`},
		"without keys":                            {"[listen]\ninsecure_no_authentication = true", "line 3: listen.insecure_no_authentication: there is no such key any more, a site that others reach has keys"},
		"relative socket":                         {"[listen]\nsocket = \"kith.sock\"", `line 3: listen.socket = "kith.sock": give an absolute path`},
		"long socket":                             {"[listen]\nsocket = \"/" + strings.Repeat("s", 107) + "\"", `line 3: listen.socket = "/` + strings.Repeat("s", 107) + `": give a path of at most 107 bytes`},
		"no port":                                 {"[listen]\naddress = \"localhost\"", `line 3: listen.address = "localhost": give host:port`},
		"port too large":                          {"[listen]\naddress = \"127.0.0.1:99999\"", `line 3: listen.address = "127.0.0.1:99999": give host:port with a port of 0 to 65535`},
		"figures for all":                         {"[listen]\nmetrics = \"0.0.0.0:9100\"", `line 3: listen.metrics = "0.0.0.0:9100": give an address of loopback, as anyone who reaches it is told; a proxy can let others in`},
		"figures without port":                    {"[listen]\nmetrics = \"localhost\"", `line 3: listen.metrics = "localhost": give host:port, or leave it out`},
		"nothing advertised":                      {"[listen]\naddress = \"0.0.0.0:7410\"", `line 3: listen.address = "0.0.0.0:7410" names no address that other sites could dial: set listen.advertise`},
		"advertised everywhere":                   {"[listen]\nadvertise = \"0.0.0.0:7410\"", `line 3: listen.advertise = "0.0.0.0:7410": give an address that other sites can dial, or "none"`},
		"advertised badly":                        {"[listen]\nadvertise = \"here\"", `line 3: listen.advertise = "here": give host:port, or "none"`},
		"member's name":                           {"[members]\nself = \"a b\"", `line 3: members.self = "a b": give 1 to 63 letters, digits and dashes`},
		"member's cluster":                        {"[members]\nself = \"a\"\ncluster = \"xyz\"", `line 4: members.cluster = "xyz": give 32 hexadecimal digits`},
		"member of nothing":                       {"[members]\nself = \"a\"", "line 2: members.cluster is missing: draw one with kithd members id"},
		"no member":                               {"[members]\naddress = \"10.0.0.1:7\"", `line 3: members.address = "10.0.0.1:7", and members.self is missing`},
		"member of any address":                   {"[listen]\naddress = \"0.0.0.0:7410\"\nadvertise = \"none\"\n[members]\nself = \"a\"\ncluster = \"" + strings.Repeat("0a", 16) + "\"", `line 5: members.address is missing, and other members cannot dial "0.0.0.0:7410"`},
		"member without keys":                     {"[listen]\ninsecure_loopback = true\n[members]\nself = \"a\"\ncluster = \"" + strings.Repeat("0a", 16) + "\"", `line 5: members.self = "a": members prove themselves with the keys of the site`},
		"member of processors":                    {"[scheduler]\nprocessors = 2\n[members]\nself = \"a\"\ncluster = \"" + strings.Repeat("0a", 16) + "\"", "line 3: scheduler.processors = 2: a site of several members has processors at one machine, which members.executor names, and that is missing"},
		"member of an owner":                      {"[owner]\nsharing = true\n[members]\nself = \"a\"\ncluster = \"" + strings.Repeat("0a", 16) + "\"", "line 3: owner.sharing = true: a site of several members does not share its machines with an owner"},
		"executor without a number of processors": {"[members]\nself = \"a\"\nexecutor = \"a\"\ncluster = \"" + strings.Repeat("0a", 16) + "\"", "scheduler.processors is missing: whichever member leads must know how many processors machine a has"},
		"executor of a site of one":               {"[members]\nexecutor = \"a\"", "line 3: members.executor = \"a\", and members.self is missing"},
		"address of no executor":                  {"[members]\nself = \"a\"\nexecutor_address = \"h:1\"\ncluster = \"" + strings.Repeat("0a", 16) + "\"", "line 4: members.executor_address = \"h:1\", and members.executor is missing: name the machine"},
		"peer is this site":                       {"[[peers]]\nsite = \"alpha\"", `line 3: peers[0].site = "alpha" is this site: name the others only`},
		"peer twice":                              {"[[peers]]\nsite = \"beta\"\n[[peers]]\nsite = \"beta\"", `line 5: peers[1].site = "beta": name every other site once`},
		"peer without a name":                     {"[[peers]]\naddress = \"b:1\"", "line 2: peers[0].site is missing: give the site a name"},
		"peer address":                            {"[[peers]]\nsite = \"beta\"\naddress = \"beta\"", `line 4: peers[0].address = "beta": give host:port, or leave it out`},
		"share of nothing":                        {"[bags]\nshare = 0.0", `line 3: bags.share = 0.0: give a number above 0 and at most 1`},
		"share of more":                           {"[bags]\nshare = 1.5", `line 3: bags.share = 1.5: give a number above 0 and at most 1`},
		"yield":                                   {"[bags]\nyield = \"later\"", `line 3: bags.yield = "later": give "never", "task" or "now"`},
		"turn":                                    {"[bags]\nturn = \"0s\"", `line 3: bags.turn = "0s": give a positive duration of at most ten years`},
		"peer port":                               {"[[peers]]\nsite = \"beta\"\naddress = \"beta:99999\"", `line 4: peers[0].address = "beta:99999": give host:port with a port of 1 to 65535`},
		"peer here":                               {"[[peers]]\nsite = \"beta\"\naddress = \"localhost:7410\"", `line 4: peers[0].address = "localhost:7410" is this site's own address: give that of beta`},
		"peer advertised":                         {"[listen]\nadvertise = \"a:1\"\n[[peers]]\nsite = \"beta\"\naddress = \"a:1\"", `line 6: peers[0].address = "a:1" is this site's own address`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(minimal + c.text)
			mistakes, ok := errors.AsType[Mistakes](err)
			if !ok {
				t.Fatalf("the error is %v", err)
			}
			if len(mistakes) != 1 {
				t.Errorf("%d mistakes, want one: %v", len(mistakes), err)
			}
			if !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("says  %s\nwants %s", err, c.want)
			}
		})
	}
}

func TestSiteIsMissing(t *testing.T) {
	if _, err := Parse(`data = "/x"`); err == nil || err.Error() != "site is missing: give the site a name" {
		t.Errorf("%v", err)
	}
}

// One mistake does not hide another: neither a line that is no TOML, nor a wrong
// type, nor an unknown key, nor a bad value of the same table.
func TestAllMistakesAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kithd.toml")
	text := `siet = "alpha"
data = here
[listen]
address = "127.0.0.1:99999"
insecure_loopback = "yes"
[scheduler]
processors = -3
backfill = "magic"
queues = "dual"
[placement]
rank = "works"
copies = 99
max_load_age = 7
[limits]
jobs = 0
[timing]
load = "0s"
lease = "-1m"
[[peers]]
site = "beta"
address = "beta"
[[peers]]
site = "beta"
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path)
	mistakes, _ := errors.AsType[Mistakes](err)
	var lines []int
	for _, m := range mistakes {
		lines = append(lines, m.Line)
		if !strings.HasPrefix(m.String(), fmt.Sprintf("%s:%d: ", path, m.Line)) {
			t.Errorf("%s: no place", m)
		}
	}
	if want := []int{1, 2, 4, 5, 7, 8, 9, 11, 12, 13, 15, 17, 18, 21, 23}; !slices.Equal(lines, want) {
		t.Errorf("mistakes on the lines %v, want %v:\n%v", lines, want, err)
	}
}

// What a file leaves out has its default, and what it says is kept.
func TestAbsentIsNotZero(t *testing.T) {
	for text, want := range map[string]meta.Rank{
		"":                        meta.Default().Placement.Rank,
		`scheme = "mct"`:          meta.RankCompletion,
		`scheme = "hierarchical"`: meta.RankStart,
		`scheme = "mct"` + "\nrank = \"completion\"": meta.RankCompletion,
		`rank = "start"`: meta.RankStart,
	} {
		c, err := Parse(minimal + "[placement]\n" + text)
		if err != nil || c.Placement.Rank != want {
			t.Errorf("%q ranks by %v, want %v: %v", text, c.Placement.Rank, want, err)
		}
	}
	c, err := Parse(minimal + "[executor]\ngrace = \"0s\"\n[files]\nkeep_free = 0\n")
	if err != nil || c.Executor.Grace != 0 || c.Files.KeepFreeBytes != 0 {
		t.Errorf("zeros that were written down are %v and %v, %v", c.Executor.Grace, c.Files.KeepFreeBytes, err)
	}
}

// What is good must stay so.
func TestGoodFiles(t *testing.T) {
	for name, text := range map[string]string{
		"everywhere":           "[listen]\naddress = \":7410\"\nadvertise = \"10.0.0.1:7410\"",
		"dials out":            "[listen]\naddress = \"0.0.0.0:7410\"\nadvertise = \"none\"",
		"same port elsewhere":  "[listen]\naddress = \"0.0.0.0:7410\"\nadvertise = \"a:7410\"\n[[peers]]\nsite = \"b\"\naddress = \"10.0.0.2:7410\"",
		"free ports":           "[listen]\naddress = \"127.0.0.1:0\"",
		"peers in one line":    `peers = [ { site = "b" }, { site = "c", address = "c:1" } ]`,
		"dotted keys":          `log.level = "debug"`,
		"whole number as rate": "[timing]\nclock_rate = 0",
		"the documented one":   "[listen]\naddress = \"10.8.0.1:7410\"",
		"on loopback":          "[listen]\ninsecure_loopback = true\n[[peers]]\nsite = \"b\"\naddress = \"[::1]:7411\"\n[[peers]]\nsite = \"c\"",
	} {
		if _, err := Parse(minimal + text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is written is read back as it was.
func TestTOML(t *testing.T) {
	c := Default()
	c.Site, c.Placement.Scheme, c.Placement.Rank = "alpha", meta.MCT, meta.RankCompletion
	c.Executor.Directories = []string{"/a", `/with "quotes" and \ ` + "\x01é"}
	c.Files.QuotaBytes, c.Timing.Heartbeat, c.Scheduler.Speed = 12345, 1234*time.Millisecond, 0.5
	c.Peers = []Peer{{"beta", "b:1"}, {"gamma", ""}}
	got, err := Parse(string(c.TOML()))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := string(c.TOML()), string(got.TOML()); a != b {
		t.Errorf("written\n%s\nread back as\n%s", a, b)
	}
}

func TestDoubts(t *testing.T) {
	own := []net.Addr{&net.IPNet{IP: net.ParseIP("10.8.0.1")}}
	c := Default()
	c.Listen.Address = "10.8.0.2:7411"
	if got := c.Doubts(own).Error(); got != `listen.address = "10.8.0.2:7411": no interface of this machine has this address; kithd cannot start with it here` {
		t.Errorf("doubts: %s", got)
	}
	c.Listen.Address = "0.0.0.0:7410"
	if got := c.Doubts(own); len(got) > 0 {
		t.Errorf("doubts: %v", got)
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "kithd.toml")
	if _, err := Load(missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("a missing file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(minimal)
	f.Add("[[peers]]\nsite=1")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		if err := c.Validate(); err != nil {
			t.Errorf("parsed, but %v", err)
		}
		if _, err := Parse(string(c.TOML())); err != nil {
			t.Errorf("written as\n%s\nbut %v", c.TOML(), err)
		}
	})
}

// Queues in which home jobs do not see guests and the mode of that name imply each other.
func TestInvisible(t *testing.T) {
	for _, text := range []string{
		"site = \"alpha\"\n[scheduler]\nqueues = \"dual-preempt\"", "site = \"alpha\"\n[no_harm]\nmode = \"invisible\"",
		"site = \"alpha\"\n[scheduler]\nqueues = \"dual-preempt\"\n[no_harm]\nmode = \"invisible\"",
	} {
		c, err := Parse(text)
		if err != nil || c.Scheduler.Queues != sitesched.DualPreempt || c.NoHarm.Mode != meta.HarmInvisible {
			t.Errorf("%q: %v, %v, %v", text, c.Scheduler.Queues, c.NoHarm.Mode, err)
		}
	}
	if c, err := Parse("site = \"alpha\"\n[no_harm]\nmode = \"bounded\""); err != nil || c.Scheduler.Queues != sitesched.DualBackfill || c.NoHarm.Mode != meta.HarmBounded {
		t.Errorf("bounded: %v, %v, %v", c.Scheduler.Queues, c.NoHarm.Mode, err)
	}
}

// What is no file, or no configuration by its length, is neither waited for nor read without an end.
func TestLoadWhatIsNoFile(t *testing.T) {
	for name, c := range map[string]struct {
		make func(path string) error
		says string
	}{
		"a pipe":     {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "regular file"},
		"a folder":   {func(path string) error { return os.Mkdir(path, 0o700) }, "regular file"},
		"a device":   {func(path string) error { return os.Symlink("/dev/zero", path) }, "regular file"},
		"a long one": {func(path string) error { return os.WriteFile(path, make([]byte, mostBytes+1), 0o600) }, "more than 1048576 bytes"},
	} {
		path := filepath.Join(t.TempDir(), "kithd.toml")
		if err := c.make(path); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
