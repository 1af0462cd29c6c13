package wire

import (
	"maps"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Bounds on bags that others need by name. In bytes.
const (
	Table   = 3 << 20  // in a request
	indices = 64 << 10 // of tasks
	matrix  = 64 << 10
	policy  = 4 << 10
)

// bagBounds are the rows about bags, as users see them.
var bagBounds = map[protoreflect.FullName]bound{
	"kith.v1.Bag.id":                    text(jobID),
	"kith.v1.Bag.indices":               text(indices),
	"kith.v1.Bag.matrix":                text(matrix),
	"kith.v1.Bag.left_out":              list(64, 64),
	"kith.v1.Bag.after":                 list(Dependencies, 0),
	"kith.v1.BagPolicies.requirements":  text(policy),
	"kith.v1.BagPolicies.rank":          text(policy),
	"kith.v1.BagPolicies.concurrency":   text(policy),
	"kith.v1.BagPolicies.deadline":      text(policy),
	"kith.v1.BagPolicies.replicate":     text(policy),
	"kith.v1.BagPolicies.sites":         text(policy),
	"kith.v1.BagPolicies.etag":          text(16),
	"kith.v1.TaskTable.data":            text(Table),
	"kith.v1.TaskTable.upload_id":       text(128),
	"kith.v1.BagStatus.reason":          text(detail),
	"kith.v1.BagStatus.user":            text(ShortText),
	"kith.v1.BagStatus.failures":        list(64, 0),
	"kith.v1.BagStatus.sites":           list(256, 0),
	"kith.v1.BagStatus.acts":            list(32, 0),
	"kith.v1.TaskFailures.indices":      list(3, 0),
	"kith.v1.TaskFailures.error_line":   text(ErrorLine),
	"kith.v1.BagSite.site_id":           text(siteID),
	"kith.v1.BagLevel.demotions":        list(16, 0),
	"kith.v1.BagDemotion.reason":        text(ShortText),
	"kith.v1.BagDemotion.site_id":       text(siteID),
	"kith.v1.Task.site_id":              text(siteID),
	"kith.v1.BagStatus.origin_site_id":  text(siteID),
	"kith.v1.BagStatus.parameter_names": list(256, 64),

	"kith.v1.SubmitBagRequest.request_id":  text(RequestID),
	"kith.v1.GetBagRequest.bag_id":         text(jobID),
	"kith.v1.ListBagsRequest.page_token":   text(256),
	"kith.v1.ListBagsRequest.states":       list(32, 0),
	"kith.v1.ListBagsRequest.users":        list(100, ShortText),
	"kith.v1.ListBagsRequest.names":        list(100, ShortText),
	"kith.v1.WatchBagRequest.bag_id":       text(jobID),
	"kith.v1.ListTasksRequest.bag_id":      text(jobID),
	"kith.v1.ListTasksRequest.page_token":  text(256),
	"kith.v1.ListTasksRequest.states":      list(32, 0),
	"kith.v1.ListTasksRequest.indices":     text(indices),
	"kith.v1.GetTaskOutputRequest.bag_id":  text(jobID),
	"kith.v1.GetTaskOutputRequest.indices": text(indices),
	"kith.v1.GetTaskOutputRequest.states":  list(32, 0),
	"kith.v1.GetTaskOutputRequest.path":    text(Path),
	"kith.v1.CancelBagRequest.bag_id":      text(jobID),
	"kith.v1.CancelBagRequest.indices":     text(indices),
	"kith.v1.CancelBagRequest.request_id":  text(RequestID),
	"kith.v1.CancelBagRequest.reason":      text(ShortText),
	"kith.v1.HoldBagRequest.bag_id":        text(jobID),
	"kith.v1.HoldBagRequest.request_id":    text(RequestID),
	"kith.v1.HoldBagRequest.reason":        text(ShortText),
	"kith.v1.ReleaseBagRequest.bag_id":     text(jobID),
	"kith.v1.ReleaseBagRequest.request_id": text(RequestID),
	"kith.v1.RetryTasksRequest.bag_id":     text(jobID),
	"kith.v1.RetryTasksRequest.indices":    text(indices),
	"kith.v1.RetryTasksRequest.request_id": text(RequestID),

	"kith.v1.SetBagPoliciesRequest.bag_id": text(jobID),
	"kith.v1.SetBagBudgetRequest.bag_id":   text(jobID),
	"kith.v1.CheckPoliciesRequest.bag_id":  text(jobID),
	"kith.v1.SetBagPoliciesResponse.etag":  text(16),
	"kith.v1.CheckPoliciesResponse.hosts":  list(4*4097, 0),
	"kith.v1.HostPolicies.site_id":         text(siteID),
	"kith.v1.HostPolicies.node":            text(ShortText),
	"kith.v1.HostPolicies.values":          list(6, 0),
	"kith.v1.PolicyValue.policy":           text(ShortText),
	"kith.v1.PolicyValue.value":            text(ShortText),
	"kith.v1.PolicyValue.part":             text(ShortText),

	"kith.v1.SubmitBagResponse.bag_id":          text(jobID),
	"kith.v1.ListBagsResponse.bags":             list(1000, 0),
	"kith.v1.ListBagsResponse.next_page_token":  text(256),
	"kith.v1.ListTasksResponse.tasks":           list(1000, 0),
	"kith.v1.ListTasksResponse.next_page_token": text(256),
	"kith.v1.GetTaskOutputResponse.path":        text(Path),
	"kith.v1.GetTaskOutputResponse.data":        text(256 << 10),
	"kith.v1.GetTaskOutputResponse.missing":     text(detail),
}

// bounds is the whole table.
var bounds = func() map[protoreflect.FullName]bound {
	all := maps.Clone(jobBounds)
	maps.Copy(all, bagBounds)
	return all
}()
