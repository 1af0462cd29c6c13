package frozen

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

type animal interface{ legs() int }

type dog struct{ Name string }

func (d *dog) legs() int { return 4 }

type bird struct{ wings int }

func (bird) legs() int { return 2 }

type inner struct {
	n    int8
	next *inner
}

type ring struct {
	items []int
	head  int
}

type outer struct {
	name    string
	secret  string
	digest  [4]byte
	payload []byte
	raw     []byte
	when    time.Duration
	half    float64
	list    []*inner
	same    *inner
	none    []int
	empty   []int
	byName  map[string]*inner
	waits   ring
	pet     animal
	other   animal
	err     error
	call    func()
	cache   int
	scratch int
}

func testForm() *Form {
	return New(Rules{
		Scratch: map[string][]string{"frozen.outer": {"scratch"}}, Caches: map[string][]string{"frozen.outer": {"cache"}},
		Opaque: map[string][]string{"frozen.outer": {"payload"}}, Hidden: map[string][]string{"frozen.outer": {"secret", "digest"}},
		Windows: map[string][2]string{"frozen.ring": {"items", "head"}}, Types: []reflect.Type{reflect.TypeFor[bird]()},
	})
}

func sample() *outer {
	in := &inner{n: -3}
	in.next = in // a ring
	return &outer{
		name: "x", secret: "s3cret", digest: [4]byte{1, 2}, payload: []byte("s3cret"), raw: []byte{0, 255}, when: time.Second, half: 0.5, list: []*inner{in, nil, in}, same: in, empty: []int{},
		byName: map[string]*inner{"b": in, "a": {n: 1}}, waits: ring{[]int{7, 8, 9}, 2}, pet: &dog{"Rex"}, other: bird{2}, err: errors.New("broken"), cache: 5, scratch: 6,
	}
}

// What is read is what was written, with what leads to it, but for what is left out.
func TestThereAndBack(t *testing.T) {
	f, v := testForm(), sample()
	hide := func(s string) string { return "#" + s[:1] }
	b := f.Append(nil, v, hide)
	if strings.Contains(string(b), "s3cret") {
		t.Error("a secret is in it")
	}
	called := false
	got := &outer{pet: &dog{}, call: func() { called = true }, scratch: 9}
	pet := got.pet
	if err := f.Decode(b, got); err != nil {
		t.Fatal(err)
	}
	switch in := got.same; {
	case got.list[0] != in, got.list[2] != in, got.list[1] != nil, in.next != in, in.n != -3, got.byName["b"] != in, got.byName["a"].n != 1:
		t.Error("pointers lead elsewhere")
	case got.none != nil || got.empty == nil:
		t.Error("nil and empty lists are the same")
	case got.secret != "#s" || len(got.payload) != 6 || got.payload[0] != 0 || got.digest == [4]byte{} || got.digest == [4]byte{1, 2}:
		t.Errorf("hidden: %q, %v, %v", got.secret, got.payload, got.digest)
	case got.name != "x" || string(got.raw) != "\x00\xff" || got.when != time.Second || got.half != 0.5 || got.err.Error() != "broken" || got.cache != 5 || got.scratch != 9:
		t.Errorf("%+v", got)
	case got.pet != pet || pet.(*dog).Name != "Rex" || got.other != bird{2}:
		t.Errorf("pets: %+v, %+v", got.pet, got.other)
	case !reflect.DeepEqual(got.waits, ring{[]int{9}, 0}):
		t.Errorf("%+v", got.waits)
	}
	if got.call(); !called {
		t.Error("the function was replaced")
	}
	// The image of what was read is the same but for what is hidden once more.
	if again := f.Append(nil, got, func(s string) string { return s }); len(again) != len(b) {
		t.Errorf("%d bytes, then %d", len(b), len(again))
	}
}

// What does not count does not, and all else does.
func TestWhatCounts(t *testing.T) {
	f := testForm()
	logical := func(change func(*outer)) string {
		v := sample()
		change(v)
		return string(f.AppendLogical(nil, v, func(string) string { return "#" }))
	}
	same := logical(func(*outer) {})
	for name, change := range map[string]func(*outer){
		"cache": func(v *outer) { v.cache++ }, "scratch": func(v *outer) { v.scratch++ }, "nil": func(v *outer) { v.empty = nil },
		"window": func(v *outer) { v.waits = ring{[]int{9}, 0} }, "secret": func(v *outer) { v.secret = "other" }, "payload": func(v *outer) { v.payload = []byte("others") },
	} {
		if logical(change) != same {
			t.Errorf("%s counts", name)
		}
	}
	for name, change := range map[string]func(*outer){
		"name": func(v *outer) { v.name = "y" }, "map": func(v *outer) { delete(v.byName, "a") }, "pointer": func(v *outer) { v.list[2] = &inner{n: -3} },
		"type": func(v *outer) { v.other = &dog{} }, "length": func(v *outer) { v.payload = nil }, "no secret": func(v *outer) { v.secret = "" },
		"error": func(v *outer) { v.err = nil }, "waits": func(v *outer) { v.waits.head = 1 },
	} {
		if logical(change) == same {
			t.Errorf("%s does not count", name)
		}
	}
}

func TestLeaves(t *testing.T) {
	f := testForm()
	got := f.Text(&outer{name: "x", payload: make([]byte, 3), when: time.Minute, byName: map[string]*inner{"k": {n: 1}}, pet: &dog{"Rex"}, cache: 1}, nil)
	if want := `name="x" payload=(3 bytes) when=1m0s byName["k"].n=1 pet.Name="Rex"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Another field, or another rule, is another schema.
func TestSchema(t *testing.T) {
	f := testForm()
	type changed struct{ A int }
	type changedMore struct {
		A int
		B string
	}
	all := map[string]bool{f.Schema(reflect.TypeFor[outer]()): true, f.Schema(reflect.TypeFor[changed]()): true, f.Schema(reflect.TypeFor[changedMore]()): true}
	all[New(Rules{}).Schema(reflect.TypeFor[outer]())] = true
	if len(all) != 4 || testForm().Schema(reflect.TypeFor[outer]()) != f.Schema(reflect.TypeFor[outer]()) {
		t.Error(all)
	}
}

// Bytes from anywhere are refused, or make some value, and never more of it than they are.
func FuzzDecode(f *testing.F) {
	form := testForm()
	f.Add(form.Append(nil, sample(), nil))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := form.Decode(b, &outer{pet: &dog{}}); err != nil && !errors.Is(err, ErrImage) {
			t.Error(err)
		}
	})
}
