package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// tokenVerb is "kith token".
func tokenVerb(c *client) *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Hand out tokens to users who are elsewhere"}
	cmd.AddCommand(tokenCreateVerb(c), tokenListVerb(c), tokenRevokeVerb(c))
	return cmd
}

func tokenCreateVerb(c *client) *cobra.Command {
	var user string
	var expires time.Duration
	cmd := &cobra.Command{
		Use:   "create --user NAME --expires D",
		Short: "Make a token for a user",
		Long: `Make a token with which a user calls this site from elsewhere (--token, --ca).
The token alone is printed on stdout; who has it is the user until it expires or
"kith token revoke" ends it.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if user == "" || expires <= 0 {
				return cli.Usagef("token create: name the user with --user, and how long the token lives with --expires, such as 12h")
			}
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				made, err := s.trust.CreateToken(ctx, &kithv1.CreateTokenRequest{User: user, Lifetime: durationpb.New(expires)})
				if err != nil {
					return err
				}
				if !c.JSON() {
					c.Note("token %s for %s until %s", made.GetTokenId(), made.GetUser(), made.GetExpireTime().AsTime().Local().Format(time.DateTime))
				}
				return c.printMessage(made, func() string { return made.GetToken() + "\n" })
			})
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "`NAME` of the user")
	cmd.Flags().DurationVar(&expires, "expires", 0, "how long the token lives, as `D`: 12h; at most 720h")
	return cmd
}

func tokenListVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens that have not expired",
		Long: `List the tokens of this site that have not expired, those included that were
revoked. The tokens themselves are not kept.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				list, err := s.trust.ListTokens(ctx, &kithv1.ListTokensRequest{})
				if err != nil {
					return err
				}
				return c.printMessage(list, func() string {
					g := cli.Grid{Columns: []cli.Column{
						{Title: "TOKEN"}, {Title: "USER", Elastic: true}, {Title: "BY", Elastic: true}, {Title: "EXPIRES"}, {Title: "REVOKED"}, {Title: "BY", Elastic: true},
					}}
					for _, t := range list.GetTokens() {
						g.Add(t.GetTokenId(), orDefault(t.GetUser(), cli.Nothing), orDefault(t.GetMakeActor(), cli.Nothing), minute(t.GetExpireTime()),
							minute(t.GetRevokeTime()), orDefault(t.GetRevokeActor(), cli.Nothing))
					}
					return g.Render(c.Width)
				})
			})
		},
	}
}

// minute is a time of day of a day.
func minute(t *timestamppb.Timestamp) string {
	if t == nil {
		return cli.Nothing
	}
	return t.AsTime().Local().Format("2006-01-02 15:04")
}

func tokenRevokeVerb(c *client) *cobra.Command {
	r := &kithv1.RevokeTokenRequest{}
	cmd := &cobra.Command{
		Use:   "revoke TOKEN-ID",
		Short: "End a token",
		Long: `End a token, by the id that "kith token create" printed and "kith token list"
shows. It is durable when the command returns.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.TokenId = args[0]
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				done, err := s.trust.RevokeToken(ctx, r)
				if err != nil {
					return err
				}
				return c.printMessage(done, func() string { return "Token " + args[0] + " is revoked.\n" })
			})
		},
	}
	cmd.Flags().BoolVar(&r.Unlisted, "unlisted", false, "also one that is not listed: made after the copy from which the data folder came back")
	return cmd
}
