package wire

import (
	"reflect"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"kith/internal/harvest"
	kithv1 "kith/proto/gen/kith/v1"
)

// Bounds that others need by name. In bytes, if nothing else is said.
const (
	ShortText    = 256 // names, users, reasons
	RequestID    = 64
	Path         = 1024
	Script       = 1 << 20
	InlineInput  = 1 << 20
	Command      = 128 << 10 // with its arguments
	Environment  = 128 << 10 // names and values
	Labels       = 64        // of them
	Files        = 1000      // inputs or outputs of a job
	Dependencies = 64        // of a job or a bag
	// Estimate is the longest command of an estimator, in bytes.
	Estimate = 4096
	// CheckpointPaths is how many paths or patterns a checkpoint may have.
	CheckpointPaths = 100
	FileSet         = 1 << 20  // a description of files
	Payload         = 3 << 20  // what to run, in a grant
	Entries         = 1 << 14  // in a list of copies
	JobIDs          = 1000     // in one call
	BundleTasks     = 256      // of a bag, given to a site at once
	TaskSet         = 4 << 10  // those of a bundle, as a set
	ErrorLine       = 128      // of a task that failed
	Parameters      = 256      // of a bag
	Piece           = 1 << 20  // of an upload
	Bundle          = 16 << 10 // the CAs of a site
	JoinAddresses   = 8        // of a site that joins, or that it joins
	siteID          = 32
	folderID        = 16
	jobID           = 128
	address         = 300
	detail          = 4096
	trustID         = 64
	fingerprint     = 64
	invitation      = 1024     // the text of one, with blanks
	unknownBytes    = 64 << 10 // fields of a later version, in one message
)

// bound is what a field may have: a text so many bytes, a list or map so many entries,
// each of so many bytes. 0 entries: the field is one text; 0 bytes: its entries are
// messages, with bounds of their own.
type bound struct{ entries, bytes int }

func text(bytes int) bound          { return bound{0, bytes} }
func list(entries, bytes int) bound { return bound{entries, bytes} }

// jobBounds is, with bagBounds, the table of all texts and all repeated fields of kith.v1. What breaks a
// bound is refused at the border, in meta/api and meta/peer, before anything reads it.
// Sums over several fields, as of a command with its arguments, are checked with what
// they belong to.
var jobBounds = map[protoreflect.FullName]bound{
	// What sites tell each other.
	"kith.v1.Frame.messages":        list(4096, 0),
	"kith.v1.Hello.site_id":         text(siteID),
	"kith.v1.Hello.version":         text(ShortText),
	"kith.v1.Hello.peer_site_id":    text(siteID),
	"kith.v1.Hello.folder":          text(folderID),
	"kith.v1.JobName.origin":        text(siteID),
	"kith.v1.CopyRequest.name":      text(ShortText),
	"kith.v1.CopyRequest.user":      text(ShortText),
	"kith.v1.CopyRequest.directory": text(Path),
	"kith.v1.CopyRequest.runs":      list(9, 0),

	"kith.v1.StartAnswer.wait_quantiles_ns": list(9, 0),

	"kith.v1.AttemptOutcome.reason":  text(ShortText),
	"kith.v1.AttemptOutcome.files":   text(FileSet),
	"kith.v1.Saved.files":            text(FileSet),
	"kith.v1.Saved.reason":           text(ShortText),
	"kith.v1.LoadDigest.site_id":     text(siteID),
	"kith.v1.LoadDigest.address":     text(address),
	"kith.v1.LoadDigest.policy":      text(ShortText),
	"kith.v1.LoadDigest.version":     text(ShortText),
	"kith.v1.LoadDigest.owner_loads": list(harvest.Widths, 0),
	"kith.v1.AuditHead.hash":         text(32),
	"kith.v1.AuditHead.signature":    text(128),
	"kith.v1.Verdict.winner_site_id": text(siteID),
	"kith.v1.Verdict.payload":        text(Payload),
	"kith.v1.CopyDigest.entries":     list(Entries, 0),
	"kith.v1.FileRequest.chunk":      text(64),
	"kith.v1.FileRequest.output":     text(Path),
	"kith.v1.FileReply.data":         text(256 << 10),
	"kith.v1.FileReply.detail":       text(detail),
	"kith.v1.SiteBundle.bundle":      text(Bundle),
	"kith.v1.SiteBundle.signature":   text(128),

	"kith.v1.SiteAddresses.addresses": list(JoinAddresses, address),

	"kith.v1.TaskClaim.node":        text(ShortText),
	"kith.v1.TaskVerdict.bundles":   list(64, 0),
	"kith.v1.GivenBundle.tasks":     text(TaskSet),
	"kith.v1.GivenBundle.payload":   text(Payload),
	"kith.v1.TaskResults.results":   list(BundleTasks, 0),
	"kith.v1.TaskResult.error_line": text(ErrorLine),
	"kith.v1.TaskResults.files":     list(BundleTasks, 0),
	"kith.v1.TaskResults.returned":  text(TaskSet),
	"kith.v1.TaskFiles.files":       text(FileSet),
	"kith.v1.StopTasks.tasks":       text(TaskSet),

	// Gossip.
	"kith.v1.SignedDigest.site_id":     text(siteID),
	"kith.v1.SignedDigest.digest":      text(1200),
	"kith.v1.SignedDigest.key_id":      text(16),
	"kith.v1.SignedDigest.signature":   text(128),
	"kith.v1.SigningKey.site_id":       text(siteID),
	"kith.v1.SigningKey.chain":         list(4, 8<<10),
	"kith.v1.GossipState.notes":        list(2*4096, 0),
	"kith.v1.LaneRequest.site_id":      text(siteID),
	"kith.v1.LaneRequest.peer_site_id": text(siteID),
	"kith.v1.LaneRequest.data":         text(256 << 10),
	"kith.v1.LaneResponse.data":        text(256 << 10),

	// Joining.
	"kith.v1.JoinHello.invitation_id": text(8),
	"kith.v1.JoinHello.proof":         text(32),
	"kith.v1.JoinProof.proof":         text(32),
	"kith.v1.JoinDetails.bundle":      text(Bundle),
	"kith.v1.JoinDetails.addresses":   list(JoinAddresses, address),
	"kith.v1.JoinDetails.version":     text(ShortText),
	"kith.v1.JoinAdmitted.bundle":     text(Bundle),
	"kith.v1.JoinAdmitted.addresses":  list(JoinAddresses, address),
	"kith.v1.JoinAdmitted.version":    text(ShortText),

	// Files.
	"kith.v1.FileSet.files": list(64_000, 0),
	"kith.v1.File.path":     text(Path),
	"kith.v1.File.inline":   text(FileSet),
	"kith.v1.File.chunks":   list(64_000, 32),

	// What the tasks of a bag run.
	"kith.v1.BagPayload.indices":     text(64 << 10),
	"kith.v1.BagPayload.matrix":      text(64 << 10),
	"kith.v1.BagPayload.names":       list(Parameters, 64),
	"kith.v1.BagPayload.rows":        list(BundleTasks, 0),
	"kith.v1.ParameterRows.names":    list(Parameters, 64),
	"kith.v1.ParameterRows.rows":     list(10_000, 0),
	"kith.v1.ParameterRow.values":    list(Parameters, 64<<10),
	"kith.v1.ParameterTable.names":   list(Parameters, 64),
	"kith.v1.ParameterTable.widths":  list(Parameters, 0),
	"kith.v1.ParameterTable.offsets": list(64<<10, 0),
	"kith.v1.TaskRow.values":         list(Parameters, 64<<10),

	// A job, as it is submitted.
	"kith.v1.Job.id":                text(jobID),
	"kith.v1.Job.name":              text(ShortText),
	"kith.v1.Job.command":           list(Command, Command),
	"kith.v1.Job.script":            text(Script),
	"kith.v1.Job.arguments":         list(Command, Command),
	"kith.v1.Job.environment":       list(Environment, Environment),
	"kith.v1.Job.working_directory": text(Path),
	"kith.v1.Job.inputs":            list(Files, 0),
	"kith.v1.Job.outputs":           list(Files, 0),
	"kith.v1.Job.labels":            list(Labels, ShortText),
	"kith.v1.Job.stdout_path":       text(Path),
	"kith.v1.Job.stderr_path":       text(Path),
	"kith.v1.Job.left_out":          list(64, 64),
	"kith.v1.Job.estimate":          text(Estimate),
	"kith.v1.Job.after":             list(Dependencies, 0),
	"kith.v1.Dependency.id":         text(jobID),
	"kith.v1.InputFile.path":        text(Path),
	"kith.v1.InputFile.data":        text(InlineInput),
	"kith.v1.InputFile.source":      text(4096),
	"kith.v1.InputFile.upload_id":   text(128),
	"kith.v1.OutputFile.path":       text(Path),

	// What became of it.
	"kith.v1.Checkpoint.signal":        text(16),
	"kith.v1.Checkpoint.paths":         list(CheckpointPaths, Path),
	"kith.v1.Demotion.site_id":         text(siteID),
	"kith.v1.Demotion.reason":          text(ShortText),
	"kith.v1.JobStatus.demotions":      list(64, 0),
	"kith.v1.JobStatus.level_sites":    list(16, 0),
	"kith.v1.JobStatus.save_trouble":   text(detail),
	"kith.v1.LevelStanding.site_id":    text(siteID),
	"kith.v1.JobStatus.reason":         text(detail),
	"kith.v1.JobStatus.origin_site_id": text(siteID),
	"kith.v1.JobStatus.user":           text(ShortText),
	"kith.v1.JobStatus.host_site_id":   text(siteID),
	"kith.v1.JobStatus.decisions":      list(64, 0),
	"kith.v1.JobStatus.rank":           text(32),
	"kith.v1.JobStatus.copies":         list(64, 0),
	"kith.v1.JobStatus.claim_events":   list(32, 0),
	"kith.v1.JobStatus.acts":           list(32, 0),
	"kith.v1.JobAct.actor":             text(ShortText),
	"kith.v1.JobAct.reason":            text(ShortText),
	"kith.v1.JobAct.site_id":           text(siteID),
	"kith.v1.Outcome.reason":           text(detail),
	"kith.v1.Outcome.outputs":          list(64_000, 0),
	"kith.v1.Outcome.missing_outputs":  list(Files, Path),
	"kith.v1.OutputInfo.path":          text(Path),
	"kith.v1.SiteDecision.site_id":     text(siteID),
	"kith.v1.SiteDecision.reason":      text(64),
	"kith.v1.SiteDecision.detail":      text(ShortText),
	"kith.v1.CopyStatus.site_id":       text(siteID),
	"kith.v1.ClaimEvent.site_id":       text(siteID),
	"kith.v1.ClaimEvent.detail":        text(64),

	// Calls of users.
	"kith.v1.SubmitJobRequest.request_id":     text(RequestID),
	"kith.v1.GetJobRequest.job_id":            text(jobID),
	"kith.v1.ListJobsRequest.page_token":      text(256),
	"kith.v1.ListJobsRequest.states":          list(32, 0),
	"kith.v1.ListJobsRequest.labels":          list(Labels, ShortText),
	"kith.v1.ListJobsRequest.users":           list(100, ShortText),
	"kith.v1.ListJobsRequest.names":           list(100, ShortText),
	"kith.v1.WatchJobsRequest.job_ids":        list(JobIDs, jobID),
	"kith.v1.WatchJobsRequest.cursor":         text(64),
	"kith.v1.CancelJobRequest.job_id":         text(jobID),
	"kith.v1.CancelJobRequest.request_id":     text(RequestID),
	"kith.v1.CancelJobRequest.reason":         text(ShortText),
	"kith.v1.CheckpointJobRequest.job_id":     text(jobID),
	"kith.v1.CheckpointJobRequest.request_id": text(RequestID),
	"kith.v1.HoldJobRequest.job_id":           text(jobID),
	"kith.v1.HoldJobRequest.request_id":       text(RequestID),
	"kith.v1.ReleaseJobRequest.job_id":        text(jobID),
	"kith.v1.ReleaseJobRequest.request_id":    text(RequestID),
	"kith.v1.GetJobOutputRequest.job_id":      text(jobID),
	"kith.v1.GetJobOutputRequest.path":        text(Path),
	"kith.v1.UploadFileRequest.data":          text(Piece),
	"kith.v1.DrainSiteRequest.reason":         text(ShortText),
	"kith.v1.DrainSiteRequest.request_id":     text(RequestID),
	"kith.v1.ResumeSiteRequest.request_id":    text(RequestID),
	"kith.v1.ForgetSiteRequest.site_id":       text(siteID),
	"kith.v1.TrustHostRequest.site_id":        text(siteID),
	"kith.v1.TrustHostRequest.node":           text(ShortText),
	"kith.v1.ListHistoryRequest.page_token":   text(256),
	"kith.v1.AddMemberRequest.name":           text(ShortText),
	"kith.v1.AddMemberRequest.address":        text(address),
	"kith.v1.RemoveMemberRequest.name":        text(ShortText),

	// Calls of operators about trust.
	"kith.v1.InviteSiteRequest.site_id":               text(siteID),
	"kith.v1.InviteSiteRequest.addresses":             list(4, address),
	"kith.v1.SetSiteAddressesRequest.site_id":         text(siteID),
	"kith.v1.SetSiteAddressesRequest.addresses":       list(JoinAddresses, address),
	"kith.v1.WatchInvitationRequest.invitation_id":    text(trustID),
	"kith.v1.DecideInvitationRequest.invitation_id":   text(trustID),
	"kith.v1.DecideInvitationRequest.fingerprint":     text(fingerprint),
	"kith.v1.AcceptInvitationRequest.text":            text(invitation),
	"kith.v1.GetTrustedSiteRequest.site_id":           text(siteID),
	"kith.v1.RevokeSiteRequest.site_id":               text(siteID),
	"kith.v1.RevokeSiteRequest.reason":                text(ShortText),
	"kith.v1.ForgetTrustedSiteRequest.site_id":        text(siteID),
	"kith.v1.RotateKeysResponse.unconfirmed_site_ids": list(1024, siteID),
	"kith.v1.LeaveFederationRequest.reason":           text(ShortText),
	"kith.v1.CreateTokenRequest.user":                 text(ShortText),
	"kith.v1.RevokeTokenRequest.token_id":             text(trustID),

	// Answers to them: what a site makes itself.
	"kith.v1.ListMembersResponse.members": list(8, 0),
	"kith.v1.BackupSiteResponse.data":     text(Piece),
	"kith.v1.SiteMember.name":             text(ShortText),
	"kith.v1.SiteMember.address":          text(address),
	"kith.v1.SiteMember.away":             text(detail),
	"kith.v1.SiteMember.unreached":        text(detail),

	// Between machines of one site.
	"kith.v1.LeadGreeting.site":        text(siteID),
	"kith.v1.LeadGreeting.member":      text(64),
	"kith.v1.LeadGreeting.machine":     text(64),
	"kith.v1.LeadGreeting.version":     text(ShortText),
	"kith.v1.MachineGreeting.boot":     text(ShortText),
	"kith.v1.MachineGreeting.version":  text(ShortText),
	"kith.v1.MachineGreeting.attempts": list(1000, 0),
	"kith.v1.LaunchOrder.payload":      text(Payload),
	"kith.v1.AdoptOrder.boot":          text(ShortText),
	"kith.v1.WorkEvent.failed":         text(detail),
	"kith.v1.WorkEvent.files_wait":     text(detail),
	"kith.v1.WorkEvent.error_line":     text(ErrorLine),
	"kith.v1.Beat.disk_low":            text(detail),
	"kith.v1.Need.chunk":               text(64),
	"kith.v1.PeerFile.site":            text(siteID),
	"kith.v1.Supply.data":              text(Payload),
	"kith.v1.Supply.error":             text(detail),

	"kith.v1.SubmitJobResponse.job_id":            text(jobID),
	"kith.v1.ForecastJobRequest.job_id":           text(jobID),
	"kith.v1.ForecastJobRequest.alternatives":     list(64, 0),
	"kith.v1.ForecastJobResponse.alternatives":    list(256, 0),
	"kith.v1.AlternativeForecast.refused":         text(1024),
	"kith.v1.AlternativeForecast.basis":           text(ShortText),
	"kith.v1.AlternativeForecast.run_basis":       text(ShortText),
	"kith.v1.AlternativeForecast.sites":           list(16, 0),
	"kith.v1.SiteAlternative.site_id":             text(siteID),
	"kith.v1.SiteAlternative.basis":               text(ShortText),
	"kith.v1.SiteAlternative.reason":              text(ShortText),
	"kith.v1.ListJobsResponse.jobs":               list(1000, 0),
	"kith.v1.ListJobsResponse.remote_copies":      list(1000, 0),
	"kith.v1.ListJobsResponse.next_page_token":    text(256),
	"kith.v1.ListHistoryResponse.attempts":        list(1000, 0),
	"kith.v1.GetHarmResponse.classes":             list(4, 0),
	"kith.v1.GetHarmResponse.mode":                text(32),
	"kith.v1.HarmCounters.left_copies":            list(6, 0),
	"kith.v1.ListHistoryResponse.next_page_token": text(256),
	"kith.v1.GetForecastsResponse.starts":         list(16, 0),
	"kith.v1.GetForecastsResponse.runs":           list(16, 0),
	"kith.v1.ForecastRecord.class":                text(ShortText),
	"kith.v1.StartForecast.basis":                 text(ShortText),
	"kith.v1.StartForecast.sites":                 list(16, 0),
	"kith.v1.SiteStartForecast.site_id":           text(siteID),
	"kith.v1.SiteStartForecast.basis":             text(ShortText),
	"kith.v1.PastAttempt.origin_site_id":          text(siteID),
	"kith.v1.PastAttempt.host_site_id":            text(siteID),
	"kith.v1.HostedCopy.job_id":                   text(jobID),
	"kith.v1.HostedCopy.name":                     text(ShortText),
	"kith.v1.HostedCopy.user":                     text(ShortText),
	"kith.v1.HostedCopy.state":                    text(32),
	"kith.v1.WatchJobsResponse.cursor":            text(64),
	"kith.v1.GetJobOutputResponse.data":           text(256 << 10),
	"kith.v1.UploadFileResponse.upload_id":        text(128),
	"kith.v1.Site.id":                             text(siteID),
	"kith.v1.Site.address":                        text(address),
	"kith.v1.Site.policy":                         text(ShortText),
	"kith.v1.Site.version":                        text(ShortText),
	"kith.v1.Site.connection_error":               text(detail),
	"kith.v1.Site.name_conflict":                  text(detail),
	"kith.v1.Site.load_refused":                   text(ShortText),
	"kith.v1.Site.key_trouble":                    text(detail),
	"kith.v1.Site.fingerprints":                   list(8, fingerprint),
	"kith.v1.Site.disk_trouble":                   text(detail),
	"kith.v1.Site.drain_reason":                   text(ShortText),
	"kith.v1.Site.drain_actor":                    text(ShortText),
	"kith.v1.Site.start_trouble":                  text(detail),
	"kith.v1.Site.hosts":                          list(16, 0),
	"kith.v1.Site.owner_loads":                    list(harvest.Widths, 0),
	"kith.v1.HostStanding.node":                   text(ShortText),
	"kith.v1.Capability.name":                     text(64),
	"kith.v1.Capability.detail":                   text(detail),
	"kith.v1.GetSiteResponse.capabilities":        list(64, 0),
	"kith.v1.ListSitesResponse.sites":             list(4097, 0),

	"kith.v1.InviteSiteResponse.text":             text(invitation),
	"kith.v1.InviteSiteResponse.invitation_id":    text(trustID),
	"kith.v1.InviteSiteResponse.fingerprint":      text(fingerprint),
	"kith.v1.InviteSiteResponse.doubt":            text(detail),
	"kith.v1.Invitation.id":                       text(trustID),
	"kith.v1.Invitation.site_id":                  text(siteID),
	"kith.v1.Invitation.actor":                    text(ShortText),
	"kith.v1.JoiningSite.site_id":                 text(siteID),
	"kith.v1.JoiningSite.fingerprint":             text(fingerprint),
	"kith.v1.JoiningSite.addresses":               list(JoinAddresses, address),
	"kith.v1.JoiningSite.version":                 text(ShortText),
	"kith.v1.ListInvitationsResponse.invitations": list(128, 0),
	"kith.v1.AcceptConnecting.site_id":            text(siteID),
	"kith.v1.AcceptConnecting.address":            text(address),
	"kith.v1.AcceptConnecting.error":              text(detail),
	"kith.v1.AcceptWaiting.site_id":               text(siteID),
	"kith.v1.AcceptWaiting.own_fingerprint":       text(fingerprint),
	"kith.v1.TrustedSite.site_id":                 text(siteID),
	"kith.v1.TrustedSite.fingerprints":            list(8, fingerprint),
	"kith.v1.TrustedSite.addresses":               list(JoinAddresses, address),
	"kith.v1.TrustedSite.told_addresses":          list(JoinAddresses, address),
	"kith.v1.TrustedSite.version":                 text(ShortText),
	"kith.v1.TrustedSite.actor":                   text(ShortText),
	"kith.v1.TrustedSite.connection_error":        text(detail),
	"kith.v1.ListTrustedSitesResponse.sites":      list(1024, 0),
	"kith.v1.CreateTokenResponse.token":           text(4096),
	"kith.v1.CreateTokenResponse.token_id":        text(trustID),
	"kith.v1.CreateTokenResponse.user":            text(ShortText),
	"kith.v1.IssuedToken.token_id":                text(trustID),
	"kith.v1.IssuedToken.user":                    text(ShortText),
	"kith.v1.IssuedToken.make_actor":              text(ShortText),
	"kith.v1.IssuedToken.revoke_actor":            text(ShortText),
	"kith.v1.ListTokensResponse.tokens":           list(20_000, 0),
	"kith.v1.RevokedToken.token_id":               text(trustID),
	"kith.v1.RevokedToken.actor":                  text(ShortText),
	"kith.v1.ListRevokedTokensResponse.tokens":    list(10_000, 0),
}

// Check returns what of a message of kith.v1 breaks a bound.
func Check(m proto.Message) []Breach {
	if p := structs[reflect.TypeOf(m)]; p != nil {
		if v := reflect.ValueOf(m); !v.IsNil() && p.fits(v.Elem()) {
			return nil
		}
	}
	r := m.ProtoReflect()
	return plans[r.Descriptor()].check(r)
}

// plan is what there is to check of a kind of message.
type plan struct {
	fields []planned
	// choices are what its oneofs hold. A message between sites is one of two dozen kinds:
	// to ask which one it is costs as much as to ask whether it is one of them.
	choices []choice
	layout  *layout // of its struct; nil if that is not known
}

// choice is a oneof.
type choice struct {
	of     protoreflect.OneofDescriptor
	fields map[protoreflect.FieldNumber]*planned
}

type planned struct {
	fd   protoreflect.FieldDescriptor
	most bound
	sub  *plan // of a field of messages; nil if they are not of kith.v1
}

// plans are those of all messages of kith.v1, structs the same by the types of pointers to
// their structs.
var plans, structs = makePlans()

func makePlans() (map[protoreflect.MessageDescriptor]*plan, map[reflect.Type]*plan) {
	all := make(map[protoreflect.MessageDescriptor]*plan)
	var add func(m protoreflect.MessageDescriptor) *plan
	add = func(m protoreflect.MessageDescriptor) *plan {
		if m.ParentFile().Package() != "kith.v1" {
			return nil
		}
		if p := all[m]; p != nil {
			return p
		}
		p := &plan{}
		all[m] = p
		for i := range m.Fields().Len() {
			fd := m.Fields().Get(i)
			f := planned{fd: fd, most: bounds[fd.FullName()]}
			if fd.Message() != nil && !fd.IsMap() {
				f.sub = add(fd.Message())
			}
			if f.sub != nil || f.most != (bound{}) {
				p.add(f)
			}
		}
		return p
	}
	for _, file := range files {
		for i := range file.Messages().Len() {
			add(file.Messages().Get(i))
		}
	}
	types := make(map[reflect.Type]*plan, len(all))
	for m, p := range all {
		if p.layout = p.lay(m); p.layout != nil {
			kind, _ := protoregistry.GlobalTypes.FindMessageByName(m.FullName())
			types[reflect.TypeOf(kind.Zero().Interface())] = p
		}
	}
	return all, types
}

// add adds a field, to its oneof if it is in one.
func (p *plan) add(f planned) {
	of := f.fd.ContainingOneof()
	if of == nil || of.IsSynthetic() {
		p.fields = append(p.fields, f)
		return
	}
	i := slices.IndexFunc(p.choices, func(c choice) bool { return c.of == of })
	if i < 0 {
		i = len(p.choices)
		p.choices = append(p.choices, choice{of, make(map[protoreflect.FieldNumber]*planned)})
	}
	p.choices[i].fields[f.fd.Number()] = &f
}

var files = []protoreflect.FileDescriptor{
	kithv1.File_kith_v1_bag_proto, kithv1.File_kith_v1_bag_service_proto, kithv1.File_kith_v1_exchange_proto, kithv1.File_kith_v1_file_service_proto, kithv1.File_kith_v1_gossip_proto,
	kithv1.File_kith_v1_gossip_service_proto, kithv1.File_kith_v1_harm_proto, kithv1.File_kith_v1_job_proto, kithv1.File_kith_v1_join_proto,
	kithv1.File_kith_v1_job_service_proto, kithv1.File_kith_v1_payload_proto, kithv1.File_kith_v1_peer_proto,
	kithv1.File_kith_v1_peer_service_proto, kithv1.File_kith_v1_site_proto, kithv1.File_kith_v1_site_service_proto,
	kithv1.File_kith_v1_trust_service_proto, kithv1.File_kith_v1_work_service_proto,
}
