package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/internal/cli"
)

// reason returns the reason that a site gave for an error, or "".
func reason(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// retryAfter returns when a site wants to be asked again, or 0.
func retryAfter(err error) time.Duration {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// explain puts an error of a verb into words. It returns nil for nil and
// leaves a failure as it is.
func (c *client) explain(err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*cli.Failure](err); ok {
		return f
	}
	if st, ok := status.FromError(err); ok {
		return c.explainStatus(st)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errSilent) {
		return c.noAnswer()
	}
	return cli.Refusedf("%v", err)
}

// explainStatus puts the answer of a site, or the lack of one, into words.
func (c *client) explainStatus(st *status.Status) *cli.Failure {
	why := reason(st.Err())
	switch st.Code() {
	case codes.DeadlineExceeded:
		return c.noAnswer()
	case codes.Unavailable:
		if why == "" {
			return c.unreachable(st)
		}
	case codes.Unimplemented:
		if strings.Contains(st.Message(), "unexpected HTTP status code") { // it speaks HTTP/2, but not gRPC
			return &cli.Failure{Code: exitUnreachable, Problems: []string{
				fmt.Sprintf("what answers at %s is another program; is it a kithd? --site or KITH_SITE chooses another", c.address)}}
		}
		return cli.Refusedf("site %s does not know this request: its kithd is older than this kith; update one of them", c.address)
	}
	if fields := violations(st); len(fields) > 0 {
		return &cli.Failure{Code: cli.ExitUsage, Problems: fields}
	}
	text := st.Message()
	if advice := advice(why); advice != "" {
		text += "; " + advice
	}
	if after := retryAfter(st.Err()); after > 0 && !strings.Contains(text, "try again in") {
		text += fmt.Sprintf("; try again in %v", after)
	}
	return &cli.Failure{Code: exitCodeOf(st.Code()), Problems: []string{text}}
}

// exitCodeOf is the table of gRPC codes and exit codes.
func exitCodeOf(code codes.Code) int {
	switch code {
	case codes.InvalidArgument, codes.OutOfRange:
		return cli.ExitUsage
	case codes.Unavailable, codes.DeadlineExceeded:
		return exitUnreachable
	case codes.ResourceExhausted:
		return exitBusy
	}
	return cli.ExitRefused
}

// advice says what to do about a reason that a site gave.
func advice(reason string) string {
	switch reason {
	case "TOKEN_MISSING":
		return "kith sends the one in the file of --token, or KITH_TOKEN"
	case "JOB_NOT_FOUND":
		return `"kith queue --all" lists the jobs of this site`
	case "BAG_NOT_FOUND":
		return `"kith bag list --all" lists the bags of this site`
	case "POLICIES_CHANGED":
		return `"kith bag show" has them, and a second "kith bag policy set" replaces those`
	case "BAG_ENDED":
		return `"kith bag retry" runs tasks again`
	case "JOB_OF_ANOTHER_SITE":
		return "ask that site with --site: a job's id begins with its origin"
	case "NO_SITE_LARGE_ENOUGH":
		return `ask for less; "kith sites" shows what there is`
	case "REQUEST_ID_REUSED":
		return "use another --request-id, or leave it out"
	case "JOB_STARTED":
		return `"kith cancel" ends it`
	case "JOB_NOT_RUNNING":
		return `"kith show" tells where it is`
	case "JOB_NOT_MOVABLE":
		return "submit it with --checkpoint, or with --requeue if it may begin again"
	case "JOB_LAST_ATTEMPT":
		return `it ends with what it has; "kith cancel" ends it before`
	case "JOB_ENDING":
		return `"kith wait" tells when it has ended`
	case "JOB_NOT_HELD":
		return `"kith show" tells where it is`
	case "OUTPUT_NOT_FOUND":
		return `"kith show" lists what came back`
	case "HOST_UNREACHABLE":
		return "the output is there when the site is back"
	}
	return ""
}

// violations lists the wrong fields of a request, by the names that they have
// on the command line.
func violations(st *status.Status) []string {
	var problems []string
	for _, d := range st.Details() {
		bad, ok := d.(*errdetails.BadRequest)
		if !ok {
			continue
		}
		for _, v := range bad.GetFieldViolations() {
			text := v.GetField() + ": " + v.GetDescription()
			if flag := flagOf(v.GetField()); flag != "" {
				text = fmt.Sprintf("%s (%s): %s", flag, v.GetField(), v.GetDescription())
			}
			problems = append(problems, text)
		}
	}
	return problems
}

// flagOf returns what sets a field of a request on the command line, or "".
func flagOf(field string) string {
	field, _, _ = strings.Cut(field, "[")
	switch {
	case field == "indices":
		return "--index"
	case strings.HasPrefix(field, "bag.policies."):
		return "--policy"
	case strings.HasPrefix(field, "policies."):
		return "FILE"
	}
	switch field = strings.TrimPrefix(field, "bag."); field {
	case "indices":
		return "--array"
	case "max_running":
		return "%N of --array"
	case "values", "matrix":
		return "--" + field
	case "table", "table.data", "table.upload_id", "table.format":
		return "--params"
	case "retries", "priority":
		return "--" + field
	case "budget_processor_seconds":
		return "--budget or HOURS"
	case "max_replicas":
		return "--replicas"
	case "tail_at":
		return "--tail-at"
	case "bag_id":
		return "BAG"
	case "job.command", "job.arguments":
		return "COMMAND"
	case "job.script":
		return "SCRIPT"
	case "after", "singleton", "job.after", "job.singleton":
		return "--dependency"
	case "job.name":
		return "--job-name"
	case "job.environment":
		return "--export"
	case "job.working_directory":
		return "--chdir"
	case "job.processors":
		return "--ntasks times --cpus-per-task"
	case "job.tasks":
		return "--ntasks"
	case "job.memory_bytes":
		return "--mem"
	case "job.walltime":
		return "--time"
	case "job.copies":
		return "--copies"
	case "job.inputs":
		return "--input"
	case "job.outputs":
		return "--output-file"
	case "job.require_outputs":
		return "--require-outputs"
	case "job.checkpoint", "job.checkpoint.paths":
		return "--checkpoint"
	case "job.level":
		return "--level"
	case "job.estimate":
		return "--estimate"
	case "job.walltime_unknown":
		return "--time unknown"
	case "job.checkpoint.exit_code":
		return "--checkpoint-exit"
	case "job.checkpoint.signal":
		return "--checkpoint-signal"
	case "job.checkpoint.grace":
		return "--checkpoint-grace"
	case "job.checkpoint.every":
		return "--checkpoint-every"
	case "job.checkpoint.before_walltime":
		return "--signal"
	case "job.labels", "labels":
		return "--label"
	case "job.on_site_lost":
		return "--on-site-lost"
	case "job.stdout_path":
		return "--stdout"
	case "job.stderr_path":
		return "--stderr"
	case "request_id":
		return "--request-id"
	case "job_id", "job_ids":
		return "JOB"
	case "reason":
		return "--reason"
	}
	return ""
}

func (c *client) noAnswer() *cli.Failure {
	text := fmt.Sprintf("site %s did not answer within %v", c.address, c.timeout)
	if cause := c.dialled.cause(); cause != "" {
		text += ": " + cause
	}
	return &cli.Failure{Code: exitUnreachable, Problems: []string{text + "; is it the right --site? A longer --timeout waits longer"}}
}

// overtime returns err, or what it means when a site did answer and the time
// that the user gave was up before job had ended.
func (c *client) overtime(ctx context.Context, reached bool, err error, jobs ...string) error {
	// The site is told of the limit and may notice first.
	up := errors.Is(ctx.Err(), context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded
	if err == nil || !reached || !up {
		return err
	}
	verb := "has"
	if len(jobs) > 1 {
		verb = "have"
	}
	return &cli.Failure{Code: exitUnreachable, Problems: []string{fmt.Sprintf("%s %s not ended within %v", strings.Join(jobs, ", "), verb, c.timeout)}}
}

// unreachable is for an UNAVAILABLE that no kithd sent.
func (c *client) unreachable(st *status.Status) *cli.Failure {
	text := fmt.Sprintf("site %s broke the connection; is it a kithd? One with keys wants --ca and --token", c.address)
	if strings.HasPrefix(c.address, "unix:") { // which needs neither
		text = fmt.Sprintf("site %s broke the connection before it answered; look whether kithd runs there and what it did, then repeat the command", c.address)
	}
	if c.caFile != "" {
		text = fmt.Sprintf("site %s closed the connection before it answered; it may have too many at this moment, see its log", c.address)
	}
	if _, why, ok := strings.Cut(st.Message(), "authentication handshake failed: "); ok {
		text = fmt.Sprintf("site %s did not prove that it is the one of --ca: %s", c.address, strings.Trim(why, `"`))
		if c.caFile == "" {
			text = fmt.Sprintf("site %s did not prove itself, as no CA was named: give its ca.crt with --ca or KITH_CA", c.address)
		}
	}
	if cause := c.dialled.cause(); cause != "" {
		text = fmt.Sprintf("site %s cannot be reached: %s; is kithd running there? --site or KITH_SITE chooses another", c.address, cause)
		if strings.HasPrefix(c.address, "unix:") && strings.Contains(cause, "permission denied") {
			text = fmt.Sprintf("site %s: permission denied: this account may not open the socket, or enter its folder; "+
				"it is for root, the operators' group and whoever else the folder's mode lets in", c.address)
		}
	}
	return &cli.Failure{Code: exitUnreachable, Problems: []string{text}}
}
