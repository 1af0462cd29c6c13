package invite

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func sample(t testing.TB, addresses ...string) (Invitation, string) {
	t.Helper()
	if len(addresses) == 0 {
		addresses = []string{"kith.uni-a.example.org:7410", "192.0.2.17:7410"}
	}
	i, err := New("uni-a", Pin{1, 2, 3}, addresses, Lifetime, noon)
	if err != nil {
		t.Fatal(err)
	}
	text, err := i.Text()
	if err != nil {
		t.Fatal(err)
	}
	return i, text
}

func TestTextComesBack(t *testing.T) {
	for _, addresses := range [][]string{
		{"kith.uni-a.example.org:7410", "kith2.uni-a.example.org:7410"},
		{"192.0.2.17:1"}, {"[2001:db8::17]:65535", "Kith.Example.org:7410"}, {"a:1", "b:2", "10.0.0.1:3", "[::1]:4"},
	} {
		i, text := sample(t, addresses...)
		if len(text) > MaxText || strings.ContainsAny(text, " \n") || strings.ContainsAny(text[len(prefix):], "ilou") {
			t.Errorf("%v: %q has %d characters", addresses, text, len(text))
		}
		groups := text[:40] + "\n  " + text[40:80] + "-" + text[80:]
		for _, form := range []string{text, strings.ToUpper(text), " " + groups + "\r\n", prefix + strings.NewReplacer("1", "l", "0", "O").Replace(text[len(prefix):])} {
			got, err := Parse(form)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(i) || got.Secret != i.Secret {
				t.Errorf("%q: %v, %v; want %v", form, got, err, i)
			}
		}
	}
	a, _ := sample(t)
	b, _ := sample(t)
	if a.Secret == b.Secret || a.ID() == b.ID() {
		t.Error("two invitations have one secret")
	}
}

// Each mistyped, missing, doubled or swapped character is found.
func TestSlipsAreFound(t *testing.T) {
	_, text := sample(t)
	slip := func(form string) {
		t.Helper()
		if _, err := Parse(form); !errors.Is(err, ErrMistyped) || strings.Contains(err.Error(), text[20:40]) {
			t.Errorf("%q: %v", form, err)
		}
	}
	for k := len(prefix) + 1; k < len(text); k++ {
		for _, c := range "0123456789abcdefghjkmnpqrstvwxyzu*é" {
			if byte(c) != text[k] {
				slip(text[:k] + string(c) + text[k+1:])
			}
		}
		slip(text[:k] + text[k+1:])
		if k > len(prefix)+1 && text[k] != text[k-1] {
			slip(text[:k] + string(text[k-1]) + text[k:])
			slip(text[:k-1] + text[k:k+1] + text[k-1:k] + text[k+1:])
		}
		slip(text[:k])
	}
}

func TestNoInvitation(t *testing.T) {
	_, text := sample(t)
	for form, want := range map[string]error{
		"": ErrNotInvitation, "hello": ErrNotInvitation, "kith": ErrNotInvitation, "kith-x": ErrNotInvitation,
		text[1:]: ErrNotInvitation, "kith2" + text[len(prefix):]: ErrOtherVersion, strings.Repeat(text, 10): ErrNotInvitation, prefix: ErrMistyped,
	} {
		if _, err := Parse(form); !errors.Is(err, want) || len(err.Error()) > 300 {
			t.Errorf("%.40q: %v, want %v", form, err, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		site      string
		addresses []string
		lifetime  time.Duration
		want      string
	}{
		"no address":     {"uni-a", nil, Lifetime, "0 addresses, want 1 to 4; name where this site can be dialled with --address"},
		"many":           {"uni-a", []string{"a:1", "a:2", "a:3", "a:4", "a:5"}, Lifetime, "5 addresses"},
		"long":           {"uni-a", []string{strings.Repeat("a", 80) + ".org:1"}, Lifetime, "name fewer or shorter addresses with --address"},
		"longest name":   {strings.Repeat("a", 32), []string{strings.Repeat("b", 40) + ":1"}, Lifetime, "name fewer or shorter"},
		"no port":        {"uni-a", []string{"a"}, Lifetime, `address "a": no host and port; write it as HOST:PORT`},
		"port 0":         {"uni-a", []string{"a:0"}, Lifetime, "from 1 to 65535"},
		"port 070":       {"uni-a", []string{"a:070"}, Lifetime, "from 1 to 65535"},
		"underscore":     {"uni-a", []string{"a_b:1"}, Lifetime, "neither an IP address nor a name"},
		"no host":        {"uni-a", []string{":7410"}, Lifetime, "neither an IP address nor a name"},
		"zone":           {"uni-a", []string{"[fe80::1%eth0]:1"}, Lifetime, "zone"},
		"no site":        {"Uni A", []string{"a:1"}, Lifetime, "a site name is"},
		"no time":        {"uni-a", []string{"a:1"}, 0, "change --expires"},
		"too much of it": {"uni-a", []string{"a:1"}, MaxLifetime + 1, "change --expires"},
	} {
		if _, err := New(siteID(c.site), Pin{}, c.addresses, c.lifetime, noon); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestSecretDoesNotShow(t *testing.T) {
	i, _ := sample(t)
	j, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	hex := fmt.Sprintf("%x", i.Secret[:])
	for _, text := range []string{fmt.Sprint(i), fmt.Sprintf("%+v %#v %x %d %s", i, i, i.Secret, i.Secret, &i), string(j)} {
		if strings.Contains(text, hex) || strings.Contains(text, strings.Trim(fmt.Sprintf("%d", i.Secret[:3]), "[]")) || !strings.Contains(text, "(secret)") {
			t.Errorf("%s", text)
		}
	}
}

// No text makes Parse fail, and what it reads has one text.
func FuzzParse(f *testing.F) {
	_, text := sample(f)
	f.Add(text, true)
	f.Add(prefix+"-0", false)
	f.Add("kith9-", false)
	f.Add(strings.Repeat("z", 70)+"\x05abc", true)
	f.Fuzz(func(t *testing.T, text string, sum bool) {
		if sum { // what lies behind the checksum, too
			body := []byte(text)
			s := checksum(body)
			text = prefix + "-" + letters.EncodeToString(append(body, byte(s>>24), byte(s>>16), byte(s>>8), byte(s)))
		}
		i, err := Parse(text)
		if err != nil {
			if len(err.Error()) > 600 {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		one, err := i.Text()
		if err != nil || len(one) > MaxText {
			t.Errorf("%q is read and not written: %v", text, err)
		}
		if again, err := Parse(one); err != nil || again.Secret != i.Secret || fmt.Sprint(again) != fmt.Sprint(i) {
			t.Errorf("%q becomes %q: %v", text, one, err)
		}
	})
}
