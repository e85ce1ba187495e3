-- Health of a ScheduledMachine, for Argo CD.
--
-- Healthy: the desired state is reached, with or without a machine. Suspended: disabled, terminated
-- or paused by a user. Progressing: a machine is being created or removed. Degraded: manual
-- intervention is needed.
local function condition(name)
  if obj.status == nil or obj.status.conditions == nil then
    return nil
  end
  for _, found in ipairs(obj.status.conditions) do
    if found.type == name then
      return found
    end
  end
  return nil
end

local function health(status, message)
  return { status = status, message = message or "" }
end

local ready = condition("Ready")
local stalled = condition("Stalled")

if obj.metadata.deletionTimestamp ~= nil then
  return health("Progressing", "being deleted: " .. ((obj.status or {}).message or ""))
end
if obj.status == nil or ready == nil then
  return health("Progressing", "the operator has not reconciled it yet")
end
if obj.status.observedGeneration ~= nil and obj.metadata.generation ~= nil
    and obj.status.observedGeneration < obj.metadata.generation then
  return health("Progressing", "the operator has not reconciled the last change yet")
end
if stalled ~= nil and stalled.status == "True" then
  return health("Degraded", stalled.message)
end
if obj.status.phase == "Error" or ready.reason == "RemovalStalled" then
  return health("Degraded", ready.message)
end
if ready.status == "True" then
  if obj.status.phase == "Disabled" or obj.status.phase == "Terminated" then
    return health("Suspended", ready.message)
  end
  return health("Healthy", ready.message)
end
if ready.reason == "Paused" then
  return health("Suspended", ready.message)
end
if obj.status.phase == "Active" or obj.status.phase == "Inactive" then
  return health("Degraded", ready.message)
end
return health("Progressing", ready.message)
