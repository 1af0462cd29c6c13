package token

import (
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

func part(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// es256 signs what a forger likes with a key.
func es256(t testing.TB, key *ecdsa.PrivateKey, header, claims string) string {
	t.Helper()
	text := part(header) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	sig := make([]byte, 64)
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return text + "." + part(string(sig))
}

func hs256(key []byte, header, claims string) string {
	text := part(header) + "." + part(claims)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return text + "." + part(string(mac.Sum(nil)))
}

// forger writes the header and the claims of a good token, with changes.
type forger struct {
	kid    string
	header map[string]string // by name, as JSON; "" leaves it out
	claims map[string]string
}

func (f forger) json(fields [][2]string, change map[string]string) string {
	var list []string
	change = maps.Clone(change)
	for _, field := range fields {
		name, value := field[0], field[1]
		if other, ok := change[name]; ok {
			value = other
		}
		if value != "" {
			list = append(list, fmt.Sprintf("%q:%s", name, value))
		}
		delete(change, name)
	}
	for name, value := range change {
		list = append(list, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(list, ",") + "}"
}

func (f forger) head() string {
	return f.json([][2]string{{"alg", `"ES256"`}, {"kid", `"` + f.kid + `"`}, {"typ", `"JWT"`}}, f.header)
}

func (f forger) body() string {
	return f.json([][2]string{
		{"iss", `"spiffe://uni-a"`}, {"sub", `"ann"`}, {"aud", `"uni-a"`},
		{"iat", fmt.Sprint(noon.Unix())}, {"exp", fmt.Sprint(noon.Add(time.Hour).Unix())}, {"jti", `"J1"`},
	}, f.claims)
}

type fields = map[string]string

func TestAttacks(t *testing.T) {
	s := newSite(t)
	stranger := newKey(t)
	kid := s.signer.kid
	if err := s.revoked.Revoke(Revocation{"J2", noon.Add(time.Hour)}, noon); err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&s.key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	point, err := s.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	strangerPoint, err := stranger.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	jwk := fmt.Sprintf(`{"kty":"EC","crv":"P-256","x":%q,"y":%q}`, part(string(strangerPoint[1:33])), part(string(strangerPoint[33:])))

	signed := func(header, claims fields) string {
		f := forger{kid, header, claims}
		return es256(t, s.key, f.head(), f.body())
	}
	foreign := func(header, claims fields) string {
		f := forger{kid, header, claims}
		return es256(t, stranger, f.head(), f.body())
	}
	mac := func(key []byte) string {
		f := forger{kid, fields{"alg": `"HS256"`}, nil}
		return hs256(key, f.head(), f.body())
	}
	none := forger{kid, fields{"alg": `"none"`}, nil}
	good := signed(nil, nil)
	parts := strings.Split(good, ".")
	changed := part(forger{kid, nil, fields{"sub": `"root"`}}.body())
	bare := func(claims string) string { return es256(t, s.key, forger{kid: kid}.head(), claims) }
	whole := forger{kid: kid}.body()

	if _, err := s.Verify(good, noon); err != nil {
		t.Fatalf("the forger's good token: %v", err)
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"nothing":                          {"", ErrMalformed},
		"alg none":                         {part(none.head()) + "." + part(none.body()) + ".", ErrMalformed},
		"alg none, our signature":          {part(none.head()) + "." + parts[1] + "." + parts[2], ErrMalformed},
		"HS256 with the public key, DER":   {mac(public), ErrMalformed},
		"HS256 with the public key, PEM":   {mac(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})), ErrMalformed},
		"HS256 with the public key, point": {mac(point), ErrMalformed},
		"alg ES384":                        {signed(fields{"alg": `"ES384"`}, nil), ErrMalformed},
		"no alg":                           {signed(fields{"alg": ""}, nil), ErrMalformed},
		"alg in lower case":                {signed(fields{"alg": `"es256"`}, nil), ErrMalformed},
		"two algs":                         {es256(t, s.key, `{"alg":"ES256","alg":"none","kid":"`+kid+`","typ":"JWT"}`, whole), ErrMalformed},
		"no typ":                           {signed(fields{"typ": ""}, nil), ErrMalformed},
		"typ of another kind":              {signed(fields{"typ": `"at+jwt"`}, nil), ErrMalformed},
		"a key in the header":              {foreign(fields{"jwk": jwk}, nil), ErrMalformed},
		"a key in the header and no kid":   {foreign(fields{"jwk": jwk, "kid": ""}, nil), ErrMalformed},
		"a link to keys":                   {signed(fields{"jku": `"https://evil.example/keys"`}, nil), ErrMalformed},
		"a critical extension":             {signed(fields{"crit": `["b64"]`, "b64": "false"}, nil), ErrMalformed},
		"a nonce":                          {signed(fields{"nonce": `"n"`}, nil), ErrMalformed},
		"two bodies":                       {good + "." + parts[1], ErrMalformed},
		"a line break":                     {parts[0] + ".\n" + parts[1] + "." + parts[2], ErrMalformed},
		"as JSON":                          {`{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, ErrMalformed},
		"1 MiB":                            {parts[0] + "." + strings.Repeat("A", 1<<20) + "." + parts[2], ErrMalformed},
		"4 KiB and one":                    {parts[0] + "." + strings.Repeat("A", MaxLength-len(parts[0])-len(parts[2])-1) + "." + parts[2], ErrMalformed},
		"another kid":                      {signed(fields{"kid": `"other"`}, nil), ErrUnknownKey},
		"no kid":                           {signed(fields{"kid": ""}, nil), ErrUnknownKey},
		"a stranger's key under our kid":   {foreign(nil, nil), ErrBadSignature},
		"changed claims":                   {parts[0] + "." + changed + "." + parts[2], ErrBadSignature},
		"no signature":                     {parts[0] + "." + parts[1] + ".", ErrBadSignature},
		"half a signature":                 {good[:len(good)-40], ErrBadSignature},
		"a signature of zeros":             {parts[0] + "." + parts[1] + "." + part(string(make([]byte, 64))), ErrBadSignature},
		"another issuer":                   {signed(nil, fields{"iss": `"spiffe://uni-b"`}), ErrBadClaims},
		"an issuer that begins alike":      {signed(nil, fields{"iss": `"spiffe://uni-a.evil"`}), ErrBadClaims},
		"no issuer":                        {signed(nil, fields{"iss": ""}), ErrBadClaims},
		"another audience":                 {signed(nil, fields{"aud": `"uni-b"`}), ErrBadClaims},
		"two audiences":                    {signed(nil, fields{"aud": `["uni-a","uni-b"]`}), ErrBadClaims},
		"no audience":                      {signed(nil, fields{"aud": ""}), ErrBadClaims},
		"an empty list of audiences":       {signed(nil, fields{"aud": `[]`}), ErrBadClaims},
		"no user":                          {signed(nil, fields{"sub": ""}), ErrBadClaims},
		"a user with a line break":         {signed(nil, fields{"sub": `"ann\nroot"`}), ErrBadClaims},
		"a user with an escape":            {signed(nil, fields{"sub": `"\u001b[2J"`}), ErrBadClaims},
		"a long user":                      {signed(nil, fields{"sub": `"` + strings.Repeat("x", 257) + `"`}), ErrBadClaims},
		"a number as user":                 {signed(nil, fields{"sub": `7`}), ErrBadClaims},
		"no jti":                           {signed(nil, fields{"jti": ""}), ErrBadClaims},
		"a long jti":                       {signed(nil, fields{"jti": `"` + strings.Repeat("x", 65) + `"`}), ErrBadClaims},
		"no exp":                           {signed(nil, fields{"exp": ""}), ErrBadClaims},
		"exp null":                         {signed(nil, fields{"exp": "null"}), ErrBadClaims},
		"exp as a text":                    {signed(nil, fields{"exp": `"9999999999"`}), ErrBadClaims},
		"exp beyond all years":             {signed(nil, fields{"exp": "1e300"}), ErrBadClaims},
		"exp that wraps":                   {signed(nil, fields{"exp": "4e18", "iat": "-4e18"}), ErrBadClaims},
		"exp in a year":                    {signed(nil, fields{"exp": fmt.Sprint(noon.AddDate(1, 0, 0).Unix())}), ErrBadClaims},
		"exp before iat":                   {signed(nil, fields{"exp": fmt.Sprint(noon.Unix() - 1)}), ErrBadClaims},
		"no iat":                           {signed(nil, fields{"iat": ""}), ErrBadClaims},
		"made in the future":               {signed(nil, fields{"iat": fmt.Sprint(noon.Unix() + 120)}), ErrBadClaims},
		"not yet":                          {signed(nil, fields{"nbf": fmt.Sprint(noon.Unix() + 120)}), ErrBadClaims},
		"two users":                        {bare(`{"sub":"root",` + whole[1:]), ErrBadClaims},
		"two exps":                         {bare(`{"exp":` + fmt.Sprint(noon.Unix()-1) + "," + whole[1:]), ErrBadClaims},
		"claims in other letters":          {bare(strings.Replace(whole, `"exp"`, `"Exp"`, 1)), ErrBadClaims},
		"claims that are no object":        {bare(`[1]`), ErrBadClaims},
		"claims that go on":                {bare(whole + `{}`), ErrBadClaims},
		"expired": {signed(nil, fields{"iat": fmt.Sprint(noon.Unix() - 60), "exp": fmt.Sprint(noon.Unix())}),
			ErrExpired},
		"revoked": {signed(nil, fields{"jti": `"J2"`}), ErrRevoked},
	} {
		got, err := s.Verify(c.text, noon)
		if !errors.Is(err, c.want) || got != (Token{}) {
			t.Errorf("%s: %+v, %v; want %v", name, got, err, c.want)
			continue
		}
		if len(err.Error()) > 600 || strings.ContainsAny(err.Error(), "\n\x1b") || len(parts[1]) > 0 && strings.Contains(err.Error(), parts[1]) {
			t.Errorf("%s: the refusal is %q", name, err)
		}
	}
	// What is unusual and harmless passes.
	for name, text := range map[string]string{
		"an audience in a list":  signed(nil, fields{"aud": `["uni-a"]`}),
		"nbf that has come":      signed(nil, fields{"nbf": fmt.Sprint(noon.Unix())}),
		"a clock a little back":  signed(nil, fields{"iat": fmt.Sprint(noon.Unix() + 30)}),
		"claims that say more":   signed(nil, fields{"role": `"x"`}),
		"a sign of another site": good,
	} {
		if _, err := s.Verify(text, noon); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A token of another site is none here, even if both sites had one key.
func TestTokenOfAnotherSite(t *testing.T) {
	s := newSite(t)
	other, err := NewSigner("uni-b", s.key)
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := other.Create("ann", time.Hour, noon)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(text, noon); !errors.Is(err, ErrBadClaims) {
		t.Errorf("got %v", err)
	}
}

// Whatever a caller sends, checking it does not fail, and only what our key signed passes.
func FuzzVerify(f *testing.F) {
	s := newSite(f)
	good, made := s.create(f, "ann", time.Hour)
	f.Add("Bearer " + good)
	f.Add("bearer a.b.c")
	f.Add("Basic dTpw")
	forged := forger{kid: s.signer.kid}
	f.Add("Bearer " + part(forged.head()) + "." + part(forged.body()) + "." + part("x"))
	f.Fuzz(func(t *testing.T, text string) {
		c, got, err := s.Caller(map[string][]string{"authorization": {text}}, noon)
		if err == nil && (got != made || c.Actor != "ann") {
			t.Errorf("%q passes as %+v", text, got)
		}
		if err != nil && (got != (Token{}) || c.Actor != "" || len(err.Error()) > 2000) {
			t.Errorf("%q is refused with %+v, %+v, %v", text, c, got, err)
		}
		// Signed by us, so that what lies behind the signature is met as well.
		if len(text) < MaxLength/2 {
			_, _ = s.Verify(es256(t, s.key, forged.head(), text), noon)
		}
	})
}
