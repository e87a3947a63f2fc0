"""Generates what PyTorch computes for the layers of the recogniser, for the tests of kinfolk-lab.

    pip install torch
    python bench/recogniser_fixtures.py > crates/kinfolk-lab/src/recognition/torch.txt

Only needed to change them. A line for each array: its name and its values, images with their channels last. Everything
is computed in double precision, so that all the error found in a comparison is kinfolk's.

    layer  a convolution (3 images of 7 x 7, 2 channels; window 3, stride 2, padding 1, 4 outputs), batch normalisation and
           a rectifier, in training and with running averages, and the gradients of a weighted sum of the outputs
    margin the margin softmax of CosFace over 5 classes, the sum over 4 embeddings that are normalised first
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


def show(name, tensor):
    values = tensor.detach().reshape(-1)
    print(name, *(f"{value:.9g}" for value in values.tolist()))


def rounded(*shape):
    """Random values that single precision holds exactly."""
    return torch.randn(*shape).float().double()


def layer():
    images, weight = rounded(3, 2, 7, 7).requires_grad_(), rounded(4, 2, 3, 3).requires_grad_()
    norm = nn.BatchNorm2d(4)
    with torch.no_grad():
        norm.weight.copy_(rounded(4))
        norm.bias.copy_(rounded(4))
    output = F.relu(norm(F.conv2d(images, weight, stride=2, padding=1)))
    by_output = rounded(*output.shape)
    (output * by_output).sum().backward()
    norm.eval()
    applied = F.relu(norm(F.conv2d(images, weight, stride=2, padding=1)))
    last = lambda tensor: tensor.permute(0, 2, 3, 1)
    window = lambda tensor: tensor.permute(2, 3, 1, 0)
    show("images", last(images))
    show("weight", window(weight))
    show("scale", norm.weight)
    show("shift", norm.bias)
    show("output", last(output))
    show("by_output", last(by_output))
    show("by_images", last(images.grad))
    show("by_weight", window(weight.grad))
    show("by_scale", norm.weight.grad)
    show("by_shift", norm.bias.grad)
    show("mean", norm.running_mean)
    show("variance", norm.running_var)
    show("applied", last(applied))


def margin():
    columns, classes = 128, 5
    embeddings, weight = rounded(4, columns).requires_grad_(), rounded(classes, columns).requires_grad_()
    targets = torch.tensor([3, 0, 4, 3])
    cosines = F.normalize(embeddings) @ F.normalize(weight).t()
    logits = 24.0 * (cosines - 0.2 * F.one_hot(targets, classes))
    loss = F.cross_entropy(logits, targets, reduction="sum")
    loss.backward()
    show("margin_embeddings", embeddings)
    show("margin_weight", weight)
    show("margin_targets", targets)
    show("margin_loss", loss)
    show("margin_by_embeddings", embeddings.grad)
    show("margin_by_weight", weight.grad)


layer()
margin()
