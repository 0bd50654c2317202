# Where Rails finds this file is the root of the application.
require_relative "config/environment"
run Rails.application
