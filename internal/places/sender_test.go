package places

import "testing"

// TestSender: who has one address of a /64 has all of them, so they count as one.
func TestSender(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:7411":                "192.0.2.1",
		"192.0.2.1":                     "192.0.2.1",
		"[::ffff:192.0.2.1]:7411":       "192.0.2.1",
		"::ffff:192.0.2.1":              "192.0.2.1",
		"[2001:db8:0:7::1]:7411":        "2001:db8:0:7::/64",
		"2001:db8:0:7:ffff:ffff:ffff:1": "2001:db8:0:7::/64",
		"[2001:db8:0:8::1]:7411":        "2001:db8:0:8::/64",
		"[fe80::1%eth0]:7411":           "fe80::/64%eth0",
		"[fe80::2%eth1]:7411":           "fe80::/64%eth1",
		"[::1]:7411":                    "::1",
		"@":                             "@",
		"/run/kith/alpha.sock":          "/run/kith/alpha.sock",
		"":                              "",
		"2001:db8:0:7::/64":             "2001:db8:0:7::/64", // what it returned
	} {
		if got := Sender(address); got != want {
			t.Errorf("%q counts as %q, want %q", address, got, want)
		}
	}
}
