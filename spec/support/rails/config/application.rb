# The smallest application of Rails that loads lib/, where the page's scheduler is put.
require "rails"

class App < Rails::Application
  config.autoload_paths << "#{root}/lib"
  config.eager_load = false
  config.logger = Logger.new($stderr)
end
