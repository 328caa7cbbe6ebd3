// Package client stands for go.temporal.io/auto-scaled-workers, with which a Temporal server
// starts workers in clouds. The server of the tests has none, so that the libraries of the
// clouds are not compiled.
package client

import (
	"context"

	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/auto-scaled-workers/wci/workflow/iface"
	"go.temporal.io/server/common/namespace"
	"go.uber.org/fx"
)

// Module is what the server includes.
var Module = fx.Options(fx.Provide(func() Client { return Client{} }))

// Client finds no controller of workers.
type Client struct{}

var errNone = serviceerror.NewNotFound("this server starts no workers")

// DescribeWorkerControllerInstance finds none.
func (Client) DescribeWorkerControllerInstance(context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion) (*iface.Description, []byte, error) {
	return nil, nil, errNone
}

// ValidateWorkerControllerInstanceSpec refuses all.
func (Client) ValidateWorkerControllerInstanceSpec(context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, string, map[string]iface.ScalingGroupSpecUpdate, []string) error {
	return errNone
}

// UpdateWorkerControllerInstance finds none.
func (Client) UpdateWorkerControllerInstance(context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, []byte, string, map[string]iface.ScalingGroupSpecUpdate, []string) (*iface.Description, error) {
	return nil, errNone
}

// DeleteWorkerControllerInstance finds none.
func (Client) DeleteWorkerControllerInstance(context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, string) error {
	return errNone
}
